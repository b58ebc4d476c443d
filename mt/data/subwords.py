"""The columns with the subwords of pairs, and the function that computes them.

The processes of ``parallel.py`` import this file, so it imports nothing large, such as PyTorch.
"""

import pyarrow

from mt.data.pairs import SIDES, side_texts
from mt.text.layer import TextLayer

TOKENS = pyarrow.list_(pyarrow.int32())
ID_COLUMNS = ("source_ids", "target_ids")
SUBWORDS = pyarrow.schema(
    [(f"{side}_{name}", kind) for side in SIDES for name, kind in (("ids", TOKENS), ("length", pyarrow.int32()))]
)


def with_subwords(pairs: pyarrow.RecordBatch, layer: TextLayer) -> pyarrow.RecordBatch:
    """Return the pairs with the columns of SUBWORDS added: the token ids of each side, without BOS and EOS, and their
    number."""
    sources, targets = zip(*map(layer.prepare_pair, *side_texts(pairs)), strict=True)
    columns = list(pairs.columns)
    for tokenizer, texts in ((layer.tokenizers.source, sources), (layer.tokenizers.target, targets)):
        ids = pyarrow.array(tokenizer.encode(texts), TOKENS)
        columns += [ids, ids.value_lengths()]
    return pyarrow.record_batch(columns, schema=pyarrow.schema([*pairs.schema, *SUBWORDS]))
