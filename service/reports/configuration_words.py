"""What tells configurations of training apart: degrees and batches, as cells of a table."""

from collections.abc import Sequence

from partita.models.choices import Configured

_COLUMNS = {
    "tensor_parallel": "Tensor",
    "data_parallel": "Data",
    "replicas_per_node": "Per node",
    "num_microbatches": "Microbatches",
    "microbatch_size": "Samples",
}


def configuration_cells(configured: Configured, among: Sequence[Configured]) -> dict[str, str]:
    """Give the degrees and the batch of one configuration by the columns in which some of these differ."""
    return {
        column: str(getattr(configured, field))
        for field, column in _COLUMNS.items()
        if len({getattr(each, field) for each in among}) > 1
    }


def configuration_text(configured: Configured, among: Sequence[Configured]) -> str:
    """Say the degrees in words; empty where all are alike."""
    cells = configuration_cells(configured, among)
    return ", ".join(
        f"{column.lower()} {cells[column]}" for column in ("Tensor", "Data", "Per node") if column in cells
    )
