"""A served model of several directions: each request is answered in its own, by threads that they share."""

import threading
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

from mt.config import ServingConfig
from mt.core.language import AskedDirection
from mt.serving.models import ServedModels
from mt.translation.translator import Translator
from tests import toy
from tests.serving.conftest import serving


def test_concurrent_requests_are_answered_in_their_directions(shared_runs):
    run, pairs, lines = str(shared_runs["directions-1"]), [("en", "fr"), ("fr", "en")], toy.sentences(100, seed=11)
    both = [Translator.load(run, asked=AskedDirection(*pair)).translate(lines) for pair in pairs]
    lines, *both = zip(*(row for row in zip(lines, *both, strict=True) if row[1] != row[2]), strict=True)
    assert len(lines) > 5, "a mix-up would be seen"
    before = threading.active_count()
    with serving(ServingConfig(run=run, threads=2)) as (server, _):
        assert threading.active_count() - before == 3, "two that translate, and the server"
        assert [language["targets"] for language in server.ask("/languages")[1]] == [["en", "fr"]] * 2
        names = [model["name"] for model in server.ask("/page/models")[1]]
        assert names == ["directions-1 en-fr", "directions-1 fr-en"]

        def client(number):
            (source, target), own, line = pairs[number % 2], both[number % 2], number % len(lines)
            values = {"q": lines[line], "source": source, "target": target, "model": names[number % 2]}
            (shown,) = server.ask("/page/translate", values)[1]
            answers = server.ask("/translate", values)[1]["translatedText"], shown["translations"][0]["text"]
            return answers == (own[line], own[line])

        with ThreadPoolExecutor(200) as pool:
            assert all(pool.map(client, range(200)))


def test_languages_with_the_target_are_detected_first():
    served = ServedModels([Mock(source="fr", target="en"), Mock(source="en", target="de")])
    assert [served.detect("Oui", target)[0][0] for target in ("", "de", "en")] == ["fr", "en", "fr"]
    assert [served.detect("12", target)[0][0] for target in ("", "de", "fr")] == ["fr", "en", "fr"]
