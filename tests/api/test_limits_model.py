"""tests/pure plays outages with a model of Valkey. It answers as the scripts do."""

import random
import time

from redis.asyncio import Redis

from api.keys import valkey as valkeys
from api.keys.limits import scripts
from api.keys.limits.shared import SharedLimits
from api.keys.limits.state import AWAY
from api.keys.limits.verdicts import KeyLease, Verdict
from api.keys.restrictions import KeyUse
from tests.api.minutes import good_key
from tests.pure.limits_world import Valkey

LIMIT = 20
STEPS = ("heartbeat",) * 8 + ("report",) * 6 + ("take",) * 8 + ("fail",) + ("take alone",) * 4 + ("age",)


async def test_the_model_of_valkey_answers_as_the_scripts_do(redis_url: str) -> None:
    """Random steps of three processes, and losses of data. Only times, and the random name of new data, may differ."""
    chance, lease = random.Random(1), KeyLease(good_key(LIMIT))
    answered = dict.fromkeys(("open", "closed", "accepted", "ended", "admitted", "refused", "tell"), 0)
    async with valkeys.opened(redis_url) as connection, Redis.from_url(redis_url) as client:
        processes = [SharedLimits(connection) for _ in range(3)]

        async def now_s() -> float:
            seconds, microseconds = await client.time()
            return float(seconds + microseconds / 1e6)

        await processes[0]._heartbeat()  # loads the scripts
        await client.flushdb()
        model, slowest_s = Valkey(await now_s()), 0.0
        for number in range(2_000):
            process = chance.choice(processes)
            part, model.now_s = process.participant, await now_s()
            step = chance.choice(STEPS) if number % 400 else "lose"
            if step == "lose":
                await client.flushdb()
                model.lose()
            elif step == "age" and model.life:  # by seven seconds, instead of waiting for them
                model.began_s, model.opens_s = model.began_s - 7, model.opens_s - 7
                for field in ("began", "opens"):
                    await client.hincrby("ledgerline:limits", field, -7_000_000)
            elif step == "heartbeat":
                name, is_open, count, left_us, *names = model.beat(part)
                answer = await process._run(scripts.BEAT, scripts.beat(part))
                slowest_s = max(slowest_s, await now_s() - model.now_s)
                assert answer[0].rpartition(b".")[2] == name.rpartition(b".")[2]
                model.life = answer[0].decode()
                if abs(model.now_s - model.opens_s) > slowest_s:
                    assert answer[1] == is_open
                assert answer[2] == count
                assert abs(answer[3] - left_us) <= 2 * slowest_s * 1e6
                assert set(answer[4:]) == set(names)
                part.heard(time.monotonic(), *answer)
                answered["open" if is_open else "closed"] += 1
            elif step == "report" and (report := part.next_report(time.monotonic())) is not None:
                for _ in range(2):  # as where the reply is lost
                    accepted = model.tell(part.name, report)
                    assert bool(await process._run(scripts.TELL, scripts.tell(part.name, report))) == accepted
                part.reported(report, accepted)
                answered["accepted" if accepted else "ended"] += 1
            elif step == "take" and part.life and part.state is not AWAY:
                expected = model.take(part.life, LIMIT)
                command = scripts.take(bytes(32), part.life, lease, KeyUse())
                taken = scripts.parse_taken(await process._run(scripts.TAKE, command), part.life)
                if expected is None:
                    assert taken is None
                    part.refused(part.life)
                    answered["tell"] += 1
                else:
                    assert isinstance(taken, Verdict)
                    assert (taken.admitted, taken.remaining) == expected
                    part.own.record(taken.credential_id, taken.admitted, taken.remaining, time.monotonic())
                    answered["admitted" if taken.admitted else "refused"] += 1
            elif step == "fail":
                part.failed()
            elif step == "take alone" and part.state is AWAY:
                part.own.take(lease.key, part.processes, time.monotonic())
    assert min(answered.values()) > 0, answered
