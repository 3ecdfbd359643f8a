"""A modest invented lexicon for generated values; none of it names real people or firms."""

from __future__ import annotations

GIVEN_NAMES = tuple(
    "Adela Bram Calla Dario Edda Fenn Greta Hollis Ines Jarek Kaia Lorin Mira Nolan Odile Pavel Quinn Rhea "
    "Soren Talia Ugo Vera Wren Xenia Yorick Zelda Anouk Bastian Corin Delphine Emeka Farah Gideon Hana "
    "Ivo Juno Kofi Leena Matteo Nadia Osman Priya Rufus Sanna Tomas Una Viktor Willa Yara Zane".split()
)
FAMILY_NAMES = tuple(
    "Abara Birk Castell Dorne Ekberg Falk Grady Haldane Ishii Jarvela Kestrel Lindqvist Marlow Novak Oakes "
    "Pellan Quist Rowe Sandoval Thorne Ueda Varga Whitlock Yilmaz Zeller Amsel Brandt Corvin Draper Ellery "
    "Fenwick Garrow Holt Iversen Joubert Kovac Larkin Moreau Nyberg Okafor Prentice Ravel Sorley Tamm "
    "Ullman Vance Wexley Yardley Zamora Ashby".split()
)
CITIES = tuple(
    "Ashport Brindle Calderwick Dunmere Eastholm Farrow Glenhaven Harwick Inverlea Jessop Kingsmere Larkfield "
    "Marwell Northbay Oakhurst Penrose Quayside Ravenhill Southmoor Tidewell Upperby Valemont Westbrook "
    "Yarrow Zellwood".split()
)
COUNTRIES = tuple(
    "Aldova Bereska Corvania Drelland Estmark Falonia Grenmark Halvia Istria-Nord Jorland".split()
)
STREETS = tuple(
    "Alder Beacon Cedar Drift Elm Foundry Granary Harbour Ivy Juniper Kiln Lantern Mill Nettle Orchard Pier "
    "Quarry River Station Thistle".split()
)
STREET_TYPES = ("Street", "Road", "Lane", "Avenue", "Way")
COMPANY_HEADS = tuple(
    "Amber Birchwood Copper Driftwood Ember Fieldstone Gullwing Hazel Ironbark Jasper Kite Lumen Meadow "
    "Northlight Opal Pinecrest Quill Redwood Saltmarsh Tallgrass".split()
)
COMPANY_TAILS = ("Works", "Supply", "Partners", "Labs", "Foods", "Logistics", "Studio", "Trading")
COLOURS = tuple(
    "amber black blue crimson green grey indigo ivory olive orange purple red teal white yellow".split()
)
ADJECTIVES = tuple(
    "bright calm clear early fresh gentle golden hidden late light little long new old quick quiet round sharp "
    "short silver small soft steady still warm wide".split()
)
NOUNS = tuple(
    "anchor basket bridge candle compass corner garden gate harbour kettle ladder lamp letter map market meadow "
    "mirror notebook orchard parcel path picture plan river shelf signal table ticket tower window".split()
)
VERBS = tuple(
    "check clean collect deliver finish fix move open order pack prepare repair review send sort".split()
)
TAGS = tuple(
    "archive draft family garden health home ideas later money music office school travel urgent work".split()
)
MAIL_DOMAINS = ("mailbox.example", "post.example", "letters.example")
SITE_TAILS = ("example", "test")
CURRENCIES = ("EUR", "USD", "GBP", "SEK", "JPY")
LANGUAGES = ("English", "Spanish", "French", "German", "Swedish", "Japanese")
JOB_TITLES = (
    "analyst",
    "baker",
    "carpenter",
    "designer",
    "editor",
    "engineer",
    "gardener",
    "nurse",
    "teacher",
    "welder",
)
