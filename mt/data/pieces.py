"""Cuts the sentences of pairs into pieces.

The processes of ``parallel.py`` import this file, and nothing that is large, such as PyTorch.
"""

import pyarrow

from mt.text.layer import TextLayer

PIECES = pyarrow.schema(
    [
        (f"{side}_{name}", kind)
        for side in ("source", "target")
        for name, kind in (("ids", pyarrow.list_(pyarrow.int32())), ("length", pyarrow.int32()))
    ]
)


def with_pieces(pairs: pyarrow.RecordBatch, layer: TextLayer) -> pyarrow.RecordBatch:
    """Returns the pairs with the columns of PIECES added."""
    texts = map(layer.prepare_pair, pairs["source"].to_pylist(), pairs["target"].to_pylist())
    tokenizers = (layer.tokenizers.source, layer.tokenizers.target)
    columns = list(pairs.columns)
    for tokenizer, marked in zip(tokenizers, zip(*texts, strict=True), strict=True):
        pieces = pyarrow.array(tokenizer.encode(marked), PIECES.types[0])
        columns += [pieces, pieces.value_lengths()]
    return pyarrow.record_batch(columns, schema=pyarrow.schema([*pairs.schema, *PIECES]))
