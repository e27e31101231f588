"""GET /v1/plans/{job}/report: the words of the command line, over a real network."""

import pytest
from small_problems import as_bytes, chain, too_large

JSON = {"Content-Type": "application/json", "Prefer": "wait=30"}


def planned(client, problem):
    """Have a problem planned; give the path of its job."""
    response = client.post("/v1/plans", content=as_bytes(problem), headers=JSON)
    assert response.status_code == 200, response.text
    return response.headers["location"]


def test_a_plan_in_words(real_client):
    """Tests the sentence about the bound, and that figures are those of the candidate that is asked for."""
    job = planned(real_client, chain())
    first, second = (real_client.get(f"{job}/report?candidate={each}").json() for each in (1, 2))
    assert first["headline"] == "three: 3 layers, 2 stages, forward_only, 4 microbatches, 2 devices: optimal"
    assert first["explanation"] == ["Proven optimal: no plan has a better iteration time than 15.00 s."]
    assert first["refusal"] is None
    figures = [{each["name"]: (each["text"], each["part"]) for each in told["figures"]} for told in (first, second)]
    assert figures[0]["Iteration time"] == ("15.00 s, predicted", False)
    assert figures[0]["with balanced stage times"] == ("15.00 s, the same", True)
    assert figures[1]["Iteration time"] != figures[0]["Iteration time"]
    assert second["explanation"] == first["explanation"]


def test_why_there_is_no_plan(real_client):
    """Tests that the reason is told, and that there are no figures then."""
    told = real_client.get(f"{planned(real_client, too_large())}/report").json()
    assert told["refusal"] == "No plan"
    assert told["figures"] == []
    assert "c" in told["explanation"][1]


@pytest.mark.parametrize("problem", [chain(), too_large()], ids=["planned", "infeasible"])
def test_no_such_candidate(real_client, problem):
    """Tests that a candidate that there is not is refused, with how many there are."""
    response = real_client.get(f"{planned(real_client, problem)}/report?candidate=9")
    assert (response.status_code, response.json()["type"]) == (422, "/docs#invalid-input")
    assert "and no number 9" in response.json()["errors"][0]["detail"]


@pytest.mark.parametrize(
    ("problem", "refusal", "said"),
    [(chain(), None, "Proven: these are all;"), (too_large(), "No plan", "a layer does not fit")],
    ids=["complete", "infeasible"],
)
def test_a_front_in_words(real_client, problem, refusal, said):
    """Tests what is proven of a front, and why there is none."""
    response = real_client.post("/v1/frontiers", content=as_bytes({"problem": problem}), headers=JSON)
    told = real_client.get(f"{response.headers['location']}/report").json()
    assert told["headline"].startswith("three: iteration time against peak memory, ")
    assert (told["refusal"], told["figures"]) == (refusal, [])
    assert said in " ".join(told["explanation"])


@pytest.mark.parametrize(
    ("memory", "refusal", "said"),
    [("1GB", None, "The best single move: "), ("300MB", "This plan breaks limits", "stage 1")],
    ids=["worse", "too large"],
)
def test_a_given_plan_in_words(real_client, memory, refusal, said):
    """Tests that the price of a plan comes with its words and with what it waits for, and as it is without them."""
    layers = [
        {"name": name, "forward_s": time, "weight_bytes": "200MB"} for name, time in zip("abc", (1, 2, 3), strict=True)
    ]
    problem = chain(model__layers=layers, cluster__devices={"d": {"memory_bytes": memory}})
    body = as_bytes({"problem": problem, "plan": {"stage_sizes": [1, 2]}, "solve": False})
    found = real_client.post("/v1/evaluations?include=report", content=body, headers=JSON).json()
    plain = real_client.post("/v1/evaluations", content=body, headers=JSON).json()
    assert found["answer"]["candidates"] == plain["candidates"]
    assert found["report"]["refusal"] == refusal
    assert said in " ".join(found["report"]["explanation"])
    assert found["report"]["bottleneck"] == "stage 1 · node0:1"
