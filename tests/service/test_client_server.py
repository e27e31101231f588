"""The Python client and a server, over a real network."""

import re
from pathlib import Path

import pytest
from both_clients import FORMS, client
from processes import doubled, until
from small_problems import chain, too_large

from partita.models.front import Front
from partita.service.client import Client, ServiceError, steps

README = Path(__file__).parents[2] / "README.md"


def url_of(http):
    return str(http.base_url)


@pytest.fixture(params=FORMS)
def planner(request, real_client):
    with client(request.param, url_of(real_client)) as made:
        yield made


@pytest.fixture(scope="module")
def paced():
    """A server whose solves take as long as their time limit, unless they are stopped."""
    with doubled("paced", solves=2) as (process, http):
        yield process, url_of(http)


def test_the_calls_that_answer(planner):
    """Tests that plans, fronts and prices come as models, also where there is no plan."""
    answer = planner.plan(chain(), include_problem=True)
    assert (answer.status, answer.problem.model.name) == ("optimal", "three")
    assert planner.plan(answer.problem).problem_digest == answer.problem_digest
    assert planner.plan(too_large()).status == "infeasible"
    front = planner.frontier(chain(), ("num_devices", "iteration_time_s"), 5)
    assert isinstance(front, Front) and front.status == "complete"
    priced = planner.evaluate(chain(), {"stage_sizes": [1, 2]}, solve=False)
    assert priced.candidates[0].stages[0].layers == ("a",)
    assert planner.ready().status == "ok"


def test_the_example_of_the_readme(real_client):
    """Tests that the example works as it stands."""
    example = re.search(r"```python\n(from partita.service.client.*?)```", README.read_text(), re.DOTALL)[1]
    printed = []
    code = example.replace("http://127.0.0.1:8000", url_of(real_client))
    exec(code, {"problem": chain(), "print": lambda *values: printed.append(values)})
    assert ("twice the microbatches", "optimal") in printed


def test_a_refusal(planner):
    """Tests that what is wrong in a problem comes with its place."""
    with pytest.raises(ServiceError, match="/training/num_stages") as caught:
        planner.plan(chain(training__num_stages=0))
    assert caught.value.kind == "invalid-input"


def test_batches(planner):
    """Tests that results stream, under their names, and that a bad problem fails alone."""
    batch = planner.submit_batch({"good": chain(), "bad": chain(training__num_stages=0)})
    found = {each.name: each for each in planner.results(batch.id)}
    assert (found["good"].answer.status, found["bad"].failure.status) == ("optimal", 422)
    assert planner.batch(batch.id).succeeded == 1
    variants = planner.submit_variants(chain(), {"more": {"training": {"num_microbatches": 6}}})
    (only,) = planner.results(variants.id)
    assert (only.name, only.answer.candidates[0].num_microbatches) == ("more", 6)
    assert planner.cancel_batch(variants.id).cancelled == 0


@pytest.mark.parametrize("form", FORMS)
def test_progress(paced, form):
    """Tests that a job is told at every change until it ends, and that it is found in the list."""
    with client(form, paced[1]) as planner:
        told = []
        answer = planner.plan(chain(search__time_limit_s=1, search__seed=FORMS.index(form)), on_progress=told.append)
        assert answer.status == "optimal"
        assert any(each.progress is not None and each.progress.incumbent == 8.0 for each in told)
        assert planner.jobs(state="succeeded", limit=1).jobs[0].id == told[-1].id
        assert planner.export(told[-1].id, "torch-orders", 2).startswith(b"0F0")
        front = planner.wait(planner.submit_frontier(chain(search__time_limit_s=1)).id, "frontier", within_s=60)
        assert planner.export(front.id, "torch-orders", 1, "frontier").startswith(b"0F0")


@pytest.mark.parametrize("form", FORMS)
def test_stop_and_cancel(paced, form):
    """Tests that a stopped job ends with its plan, and a cancelled one without."""
    with client(form, paced[1]) as planner:
        job = planner.submit(chain(search__time_limit_s=60, search__seed=10 + FORMS.index(form)))
        assert job.answer is None and planner.job(job.id).id == job.id
        planner.stop(job.id)
        assert planner.wait(job.id, within_s=20).answer.status == "feasible"
        other = planner.submit(chain(search__time_limit_s=60, search__seed=20 + FORMS.index(form)))
        assert planner.cancel(other.id).state == "cancelled"
        assert [each.state for each in planner.follow(other.id)] == ["cancelled"]


@pytest.mark.slow
def test_waits_through_a_restart(tmp_path, monkeypatch):
    """Tests that a client that waits gets its answer from the server that starts where the other was killed."""
    monkeypatch.setattr(steps, "LONGEST_PAUSE_S", 0.2)
    settings = {"data": str(tmp_path), "solves": 1}
    with doubled("paced", **settings) as (first, http):
        port = http.base_url.port
        planner = Client(url_of(http), retries=300)
        job = planner.submit(chain(search__time_limit_s=1)).id
        until(lambda: planner.job(job).state == "running")
        told = iter(planner.follow(job))
        next(told)
        first.kill()
        first.wait()
        with doubled("paced", **settings, port=port):
            assert [each.state for each in told][-1] == "succeeded"
        planner.close()
