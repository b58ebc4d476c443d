"""Language identification of the texts of a corpus."""

from mt.data.cleaning.sides import BatchLanguageIdentifier, CorpusSide

TEXTS = [
    "The boat is in the harbour.", "Das Boot liegt im Hafen.", "Le bateau est dans le port.", "船在港口里。",
    "STOP THE TRAIN!", "", "12:30", "é", "Лодка в гавани.",
]  # fmt: skip


def test_scores_of_texts_without_letters_do_not_prefer_a_language():
    scores = BatchLanguageIdentifier().scores(["", "The boat is in the harbor."])
    assert len(set(scores[0])) == 1 < len(set(scores[1]))


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
