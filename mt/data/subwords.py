"""Splits the sentences of pairs into subwords.

The processes of ``parallel.py`` import this file, and nothing that is large, such as PyTorch.
"""

import pyarrow

from mt.text.layer import TextLayer

TOKENS = pyarrow.list_(pyarrow.int32())
ID_COLUMNS = ("source_ids", "target_ids")
SUBWORDS = pyarrow.schema(
    [
        (f"{side}_{name}", kind)
        for side in ("source", "target")
        for name, kind in (("ids", TOKENS), ("length", pyarrow.int32()))
    ]
)


def with_subwords(pairs: pyarrow.RecordBatch, layer: TextLayer) -> pyarrow.RecordBatch:
    """Return the pairs with the columns of SUBWORDS added."""
    marked = map(layer.prepare_pair, pairs["source"].to_pylist(), pairs["target"].to_pylist())
    sources, targets = zip(*marked, strict=True)
    columns = list(pairs.columns)
    for tokenizer, texts in ((layer.tokenizers.source, sources), (layer.tokenizers.target, targets)):
        ids = pyarrow.array(tokenizer.encode(texts), TOKENS)
        columns += [ids, ids.value_lengths()]
    return pyarrow.record_batch(columns, schema=pyarrow.schema([*pairs.schema, *SUBWORDS]))
