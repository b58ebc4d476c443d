"""Language identification of many texts at once, compared with py3langid."""

import numpy as np
from py3langid.langid import MODEL_FILE, LanguageIdentifier

from mt.data.cleaning.sides import BatchLanguageIdentifier, CorpusSide

TEXTS = [
    "The boat is in the harbour.", "Das Boot liegt im Hafen.", "Le bateau est dans le port.", "船在港口里。",
    "STOP THE TRAIN!", "", "12:30", "é", "Лодка в гавани.",
]  # fmt: skip


def test_identifier_scores_equal_py3langid():
    model = LanguageIdentifier.from_model_file(MODEL_FILE)
    ours = BatchLanguageIdentifier()
    scores = ours.scores(TEXTS)
    for text, row in zip(TEXTS, scores, strict=True):
        theirs = model._raw_score(model._encode(text))
        if theirs.max() > np.finfo(np.float32).min:  # otherwise the text has no known feature
            np.testing.assert_allclose(row, theirs, rtol=1e-3, atol=0.05)
        else:
            assert not row.any()


def test_compare_languages_finds_other_language():
    ours = BatchLanguageIdentifier()
    others, margins = CorpusSide("deu_Latn", ours).compare_languages(TEXTS[:3])
    assert (margins > 0).tolist() == [True, False, True]
    assert [ours.labels[others[index]] for index in (0, 2)] == ["en", "fr"]
    assert CorpusSide("de_AT", ours).checks_language and not CorpusSide("tlh", ours).checks_language


def test_compare_languages_skips_unknown_language():
    _, margins = CorpusSide("xx", BatchLanguageIdentifier()).compare_languages(TEXTS)
    assert not margins.any()


def test_majority_language_counts_short_sentences():
    side = CorpusSide("zh", BatchLanguageIdentifier())
    side.add_texts(["我喜欢喝茶。", "他昨天来了。"] * 10 + ["Wir trinken heute Abend zusammen Tee am Fenster."] * 3)
    assert side.majority_language() == "zh"
