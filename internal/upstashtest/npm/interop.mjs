// Upstash's own clients against the double at UPSTASH_REDIS_REST_URL. What they expect
// of Upstash they find here, or this ends with an error.
import assert from "node:assert/strict";
import { Ratelimit } from "@upstash/ratelimit";
import { errors, Redis } from "@upstash/redis";

const url = process.env.UPSTASH_REDIS_REST_URL;
const token = process.env.UPSTASH_REDIS_REST_TOKEN;
let passed = 0;
async function check(name, f) {
  try {
    await f();
  } catch (e) {
    e.message = `${name}: ${e.message}`;
    throw e;
  }
  passed++;
}

const clients = {
  plain: new Redis({ url, token, enableAutoPipelining: false, responseEncoding: false, enableTelemetry: false }),
  base64: new Redis({ url, token, enableAutoPipelining: false, enableTelemetry: false }),
  "auto pipeline": new Redis({ url, token, enableTelemetry: false }),
};

for (const [name, redis] of Object.entries(clients)) {
  const key = (k) => `interop:${name}:${k}`;
  await check(`${name}: set and get`, async () => {
    assert.equal(await redis.set(key("s"), "grüße \u{1F511}"), "OK");
    assert.equal(await redis.get(key("s")), "grüße \u{1F511}");
    assert.equal(await redis.get(key("none")), null);
    await redis.set(key("o"), { a: [1, null, "x"] });
    assert.deepEqual(await redis.get(key("o")), { a: [1, null, "x"] });
    assert.equal(await redis.ping(), "PONG");
  });
  await check(`${name}: incr, pexpire NX, pttl`, async () => {
    assert.equal(await redis.incr(key("n")), 1);
    assert.equal(await redis.pexpire(key("n"), 60000, "NX"), 1);
    assert.equal(await redis.pexpire(key("n"), 90000, "NX"), 0);
    assert.equal(await redis.incr(key("n")), 2);
    const ttl = await redis.pttl(key("n"));
    assert.ok(ttl > 0 && ttl <= 60000, `ttl ${ttl}`);
    assert.equal(await redis.pttl(key("none")), -2);
    assert.equal(await redis.del(key("n")), 1);
  });
  await check(`${name}: pipeline`, async () => {
    const got = await redis.pipeline().incr(key("p")).pexpire(key("p"), 60000, "NX").pttl(key("p")).get(key("p")).exec();
    assert.deepEqual([got[0], got[1], got[3]], [1, 1, 1]);
    const kept = await redis.pipeline().incr(key("p")).lpush(key("p"), "x").exec({ keepErrors: true });
    assert.equal(kept[0].result, 2);
    assert.match(kept[1].error, /^WRONGTYPE /);
    await assert.rejects(redis.pipeline().lpush(key("p"), "x").exec(), /Command 1 \[ ?lpush ?\] failed: WRONGTYPE/);
  });
  await check(`${name}: transaction`, async () => {
    assert.deepEqual(await redis.multi().incr(key("m")).incr(key("m")).exec(), [1, 2]);
  });
  await check(`${name}: scripts`, async () => {
    assert.equal(await redis.eval("return redis.call('INCRBY', KEYS[1], ARGV[1])", [key("e")], [3]), 3);
    await assert.rejects(redis.evalsha("f".repeat(40), [], []), /NOSCRIPT No matching script/);
  });
  await check(`${name}: a failed command`, async () => {
    await redis.set(key("w"), "word");
    await assert.rejects(redis.incr(key("w")), (e) => e instanceof errors.UpstashError && /not an int/.test(e.message));
  });
}

await check("a wrong token", async () => {
  const stranger = new Redis({ url, token: "wrong", enableTelemetry: false, enableAutoPipelining: false });
  await assert.rejects(stranger.get("a"), (e) => e instanceof errors.UpstashError && /WRONGPASS invalid or missing auth token/.test(e.message));
  await assert.rejects(stranger.pipeline().get("a").exec(), /WRONGPASS/);
});

const algorithms = {
  fixedWindow: Ratelimit.fixedWindow(5, "60 s"),
  slidingWindow: Ratelimit.slidingWindow(5, "60 s"),
};
for (const [name, limiter] of Object.entries(algorithms)) {
  await check(`ratelimit ${name}: 100 at once, limit 5`, async () => {
    // Its windows are aligned to the clock: start well within one.
    const left = 60000 - (Date.now() % 60000);
    if (left < 10000) await new Promise((r) => setTimeout(r, left + 10));
    const limit = new Ratelimit({
      redis: clients.base64, limiter, prefix: `interop:rl:${name}`,
      ephemeralCache: false, analytics: false, timeout: 60000,
    });
    const got = await Promise.all(Array.from({ length: 100 }, () => limit.limit("mallory")));
    assert.equal(got.filter((g) => g.success).length, 5);
    assert.equal((await limit.getRemaining("mallory")).remaining, 0);
    await limit.resetUsedTokens("mallory");
    assert.equal((await limit.limit("mallory")).success, true);
  });
}

console.log(`${passed} passed, 0 failed`);
