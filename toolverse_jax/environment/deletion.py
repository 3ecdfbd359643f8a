"""Deletes a row and settles what points to it, by `on_delete` of its entity."""

from __future__ import annotations

from toolverse_jax.environment.failures import CallFailure
from toolverse_jax.environment.spec import Entity, EnvSpec
from toolverse_jax.environment.transaction import KEY, Row, Transaction
from toolverse_jax.environment.writes import spoken


def delete_row(spec: EnvSpec, tx: Transaction, entity: Entity, row: Row) -> None:
    """Delete a row; cascading deletions honour the policy of each entity they reach.

    Raises:
        CallFailure: `dependency_exists` where a policy forbids it; the caller drops the transaction.
    """
    key = row[KEY]
    # Removed first, so that a cascade through a cycle of references comes to an end.
    tx.delete(entity.name, key)
    for other in spec.entities:
        for field in other.fields:
            if field.ref == entity.name and field.type == "ref":
                for pointing in [r for r in tx.tables[other.name].values() if r[field.name] == key]:
                    current = tx.current(other.name, pointing)
                    if current is not None:
                        _settle(spec, tx, entity, other, field.name, current)
    for singleton in spec.singletons:
        for field in singleton.fields:
            if (
                field.ref == entity.name
                and field.type == "ref"
                and tx.singletons[singleton.name][field.name] == key
            ):
                if entity.on_delete == "restrict":
                    raise _in_use(entity.name, singleton.name)
                tx.set_singleton(singleton.name, {field.name: None})


def _settle(spec: EnvSpec, tx: Transaction, entity: Entity, other: Entity, field: str, row: Row) -> None:
    if entity.on_delete == "restrict":
        raise _in_use(entity.name, other.name)
    if entity.on_delete == "cascade":
        delete_row(spec, tx, other, row)
    else:
        tx.replace(other.name, row, {field: None})


def _in_use(entity: str, other: str) -> CallFailure:
    return CallFailure("dependency_exists", f"The {spoken(entity)} is still in use by a {spoken(other)}.")
