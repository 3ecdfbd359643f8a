"""The chat template of tokenizers trained by this project: Qwen framing, compact tool signatures.

A tool is one line, `name(required, optional?)`: a small policy cannot afford whole JSON Schemas in its
prompt. Everything after the system block is framed as Qwen2.5 and Qwen3 frame it, so that one renderer
serves both.
"""

from __future__ import annotations

_SYSTEM = """\
{%- if messages and messages[0].role == 'system' %}{% set lead = messages[0].content %}{% else %}{% set lead = '' %}{% endif %}
{%- if lead or tools %}
{{- '<|im_start|>system\\n' + lead }}
{%- if tools %}
{{- ('\\n' if lead else '') + 'Tools:' }}
{%- for tool in tools %}
{%- set schema = tool.function.parameters or {} %}
{%- set required = schema.required or [] %}
{{- '\\n' + tool.function.name + '(' }}
{%- for parameter in (schema.properties or {}) %}
{{- (', ' if not loop.first else '') + parameter + ('' if parameter in required else '?') }}
{%- endfor %}
{{- ')' }}
{%- endfor %}
{%- endif %}
{{- '<|im_end|>\\n' }}
{%- endif %}
"""

_MESSAGES = """\
{%- for message in messages %}
{%- if message.role == 'tool' %}
{{- '' if loop.previtem is defined and loop.previtem.role == 'tool' else '<|im_start|>user' }}
{{- '\\n<tool_response>\\n' + message.content + '\\n</tool_response>' }}
{{- '' if loop.nextitem is defined and loop.nextitem.role == 'tool' else '<|im_end|>\\n' }}
{%- elif message.role == 'assistant' %}
{{- '<|im_start|>assistant\\n' + (message.content or '') }}
{%- for call in message.tool_calls or [] %}
{%- set function = call.function if call.function is defined else call %}
{{- ('\\n' if message.content or not loop.first else '') + '<tool_call>\\n{"name": "' + function.name + '", "arguments": ' }}
{{- (function.arguments if function.arguments is string else function.arguments | tojson) + '}\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- elif message.role == 'user' %}
{{- '<|im_start|>user\\n' + message.content + '<|im_end|>\\n' }}
{%- elif not loop.first %}
{{- raise_exception('a system message is only possible at the start') }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{% endif %}
"""

CHAT_TEMPLATE = _SYSTEM + _MESSAGES
"""Jinja text for `tokenizer.chat_template`."""
