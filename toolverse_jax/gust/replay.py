"""Replays golden traces: directly on the engine, and independently through LangGraph."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

from toolverse_jax.environment.engine import Environment
from toolverse_jax.environment.session import Session
from toolverse_jax.errors import TaskError
from toolverse_jax.reward import turn_reward
from toolverse_jax.types import Task, TaskTurn

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReplayReport:
    """What happened when the golden calls of a task were made."""

    task_id: str
    turn_rewards: tuple[float, ...]
    """Reward of each user turn."""
    errors: tuple[str, ...]
    """One sentence for each golden call that failed."""
    final_state_hash: str
    expected_state_hash: str

    @property
    def ok(self) -> bool:
        """Whether all calls succeeded, all turns are rewarded and the final state is the expected one."""
        return (
            not self.errors
            and all(reward == 1.0 for reward in self.turn_rewards)
            and self.final_state_hash == self.expected_state_hash
        )


def replay(environment: Environment, task: Task) -> ReplayReport:
    """Make the golden calls of a task on a fresh session of the engine.

    Raises:
        TaskError: the task belongs to another environment.
    """
    _check_environment(environment, task)
    session = environment.session(task.seed)
    rewards: list[float] = []
    errors: list[str] = []
    for number, turn in enumerate(task.turns):
        before = len(session.journal)
        for call in turn.golden:
            result = session.call(call.tool, call.arguments)
            if result.is_error:
                errors.append(f"turn {number + 1}: {call.tool} failed: {result.content}")
        rewards.append(_reward(session, before, turn))
    return _report(task, session, rewards, errors)


def replay_langgraph(environment: Environment, task: Task) -> ReplayReport:
    """Make the golden calls through a LangGraph graph whose tools are bound to the environment.

    An independent check of the calls: a scripted model emits them as tool-call messages, LangGraph's
    `ToolNode` runs them, and results come back as tool messages, one graph run for each user turn.

    Raises:
        TaskError: the task belongs to another environment.
    """
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
    from langgraph.graph import END, START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode, tools_condition

    _check_environment(environment, task)
    session = environment.session(task.seed)
    script: list[AIMessage] = []

    def model(state: MessagesState) -> dict[str, list[AIMessage]]:
        return {"messages": [script.pop(0)]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", model)
    graph.add_node("tools", ToolNode(_bound_tools(environment, session)))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition, {"tools": "tools", END: END})
    graph.add_edge("tools", "model")
    app = graph.compile()

    messages: list[Any] = []
    errors: list[str] = []
    rewards: list[float] = []
    for number, turn in enumerate(task.turns):
        for index, call in enumerate(turn.golden):
            named = {"name": call.tool, "args": dict(call.arguments), "id": f"turn{number}call{index}"}
            script.append(AIMessage(content="", tool_calls=[named]))
        script.append(AIMessage(content=turn.answer or "Done."))
        before, seen = len(session.journal), len(messages)
        state = app.invoke(
            {"messages": [*messages, HumanMessage(content=turn.user)]}, {"recursion_limit": 50}
        )
        messages = state["messages"]
        for message in messages[seen:]:
            if isinstance(message, ToolMessage) and message.status == "error":
                errors.append(f"turn {number + 1}: {message.name} failed: {message.content}")
        errors += [
            f"turn {number + 1}: {e.call.name} failed" for e in session.journal[before:] if e.result.is_error
        ]
        rewards.append(_reward(session, before, turn))
    return _report(task, session, rewards, errors)


def _bound_tools(environment: Environment, session: Session) -> list[BaseTool]:
    from langchain_core.tools import StructuredTool

    def bind(name: str):
        def run(**arguments: Any) -> str:
            return session.call(name, arguments).content

        return run

    return [
        StructuredTool(
            name=tool.name,
            description=tool.description or tool.name,
            args_schema=json.loads(json.dumps(dict(tool.input_schema))),
            func=bind(tool.name),
        )
        for tool in environment.tools
    ]


def _reward(session: Session, before: int, turn: TaskTurn) -> float:
    made = session.journal[before:]
    return turn_reward(turn, [entry.call for entry in made], changed=[entry.changed for entry in made])


def _report(task: Task, session: Session, rewards: list[float], errors: list[str]) -> ReplayReport:
    return ReplayReport(
        task_id=task.id,
        turn_rewards=tuple(rewards),
        errors=tuple(errors),
        final_state_hash=session.state_hash(),
        expected_state_hash=task.final_state_hash,
    )


def _check_environment(environment: Environment, task: Task) -> None:
    if task.environment != environment.name:
        raise TaskError(
            f"task {task.id} is of environment {task.environment!r}, not {environment.name!r}; load that environment"
        )
