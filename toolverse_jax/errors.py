"""Errors that cross a boundary of the system, each one sentence a user can act on."""

from __future__ import annotations


class ToolverseError(Exception):
    """Base of all errors caused by input or surroundings; the command line prints its sentence.

    The message names the thing, the value found and what to do.
    """


class ConfigError(ToolverseError):
    """A configuration file or override is wrong."""


class ToolsetError(ToolverseError):
    """A toolset or an archive of toolsets cannot be read."""


class EnvironmentSpecError(ToolverseError):
    """An environment folder is missing, or its specification is invalid."""


class TaskError(ToolverseError):
    """A task or a task file is invalid, or its golden trace does not replay."""


class CheckpointError(ToolverseError):
    """A checkpoint is missing, corrupt or does not fit the model."""


class EpisodeError(ToolverseError):
    """One episode failed; it is recorded as data and never cancels its siblings."""


class EngineError(EpisodeError):
    """A rollout engine failed to answer."""
