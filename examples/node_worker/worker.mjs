// A Mainspring worker in JavaScript: claims jobs over the REST API and reports what came of them.
//
//   MAINSPRING_TOKEN=msk_... node worker.mjs
//
// Make the token with: mainspring tokens create node --role worker

const base = process.env.MAINSPRING_URL ?? "http://127.0.0.1:8080";
const leaseSeconds = 15;

const handlers = {
  async word_count({ text }, job) {
    const words = text.split(/\s+/).filter(Boolean);
    await job.progress(words.length, words.length, "counted");
    return { words: words.length };
  },
};

async function ask(method, path, body) {
  const answer = await fetch(`${base}/api/v1/work${path}`, {
    method,
    headers: { Authorization: `Bearer ${process.env.MAINSPRING_TOKEN}` },
    body: body && JSON.stringify(body),
  });
  const told = answer.status === 204 ? null : await answer.json();
  if (!answer.ok) throw Object.assign(new Error(told.detail), { code: told.code });
  return told;
}

async function run(worker, { job_id, fence, definition, payload }) {
  const report = (what, facts) => ask("POST", `${worker}/jobs/${job_id}/${what}`, { fence, ...facts });
  const job = { progress: (current, total, message) => report("progress", { current, total, message }) };
  try {
    await report("complete", { result: await handlers[definition](payload, job) });
  } catch (error) {
    if (error.code === "lease_lost") return; // Someone else runs it by now.
    await report("fail", { error: String(error.stack ?? error) });
  }
}

let isStopping = false;
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => (isStopping = true));

const { worker_id } = await ask("POST", "/workers", {
  name: "node", queues: ["node"], lease_seconds: leaseSeconds,
});
const worker = `/workers/${worker_id}`;
const beat = setInterval(
  () => ask("POST", `${worker}/heartbeat`, { lease_seconds: leaseSeconds }).catch(console.error),
  (leaseSeconds * 1000) / 3,
);
console.log(`worker ${worker_id} is ready`);
while (!isStopping) {
  // Nothing is held here: what a lost response had claimed comes again.
  const { jobs } = await ask("POST", `${worker}/claim`, {
    definitions: Object.keys(handlers), limit: 10, wait: 2, held: [],
  });
  await Promise.all(jobs.map((job) => run(worker, job)));
}
clearInterval(beat);
await ask("DELETE", worker);
