"""A served model of several directions: the directions share its threads, and each request is answered in its own."""

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import compress
from unittest.mock import Mock

from mt.config import ServingConfig
from mt.core.language import AskedDirection
from mt.serving.models import ServedModels
from mt.translation.translator import Translator
from tests import toy
from tests.serving.conftest import serving


def test_concurrent_requests_get_their_translations(shared_runs):
    run, pairs, lines = str(shared_runs["directions-1"]), [("en", "fr"), ("fr", "en")], toy.sentences(100, seed=11)
    translations = [Translator.load(run, asked=AskedDirection(*pair)).translate(lines) for pair in pairs]
    differs = [first != second for first, second in zip(*translations, strict=True)]
    lines, *translations = (list(compress(texts, differs)) for texts in (lines, *translations))
    assert len(lines) > 5, "so that swapped answers would be noticed"
    before = threading.active_count()
    with serving(ServingConfig(run=run, threads=2)) as (server, _):
        assert threading.active_count() - before == 3, "two translating threads, and the server's"
        assert [language["targets"] for language in server.ask("/languages")[1]] == [["en", "fr"]] * 2
        names = [model["name"] for model in server.ask("/page/models")[1]]
        assert names == ["directions-1 en-fr", "directions-1 fr-en"]

        def client(number):
            direction, line = number % 2, number % len(lines)
            source, target = pairs[direction]
            values = {"q": lines[line], "source": source, "target": target, "model": names[direction]}
            (shown,) = server.ask("/page/translate", values)[1]
            answers = server.ask("/translate", values)[1]["translatedText"], shown["translations"][0]["text"]
            return answers == (translations[direction][line],) * 2

        with ThreadPoolExecutor(200) as pool:
            assert all(pool.map(client, range(200)))


def test_detect_prefers_languages_with_target():
    served = ServedModels([Mock(source="fr", target="en"), Mock(source="en", target="de")])
    assert [served.detect("Oui", target)[0][0] for target in ("", "de", "en")] == ["fr", "en", "fr"]
    assert [served.detect("12", target)[0][0] for target in ("", "de", "fr")] == ["fr", "en", "fr"]
