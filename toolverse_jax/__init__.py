"""Agentic reinforcement learning of tool-using language models, in JAX."""

__version__ = "0.1.0"
