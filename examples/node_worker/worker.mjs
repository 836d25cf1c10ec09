// A Mainspring worker in JavaScript: registers its definitions, claims their jobs over the REST API
// and reports what came of them. Node 18 or newer, no packages.
//
//   mainspring tokens create node --role worker --all-tenants
//   MAINSPRING_TOKEN=msk_... node worker.mjs
//   mainspring enqueue word_count '{"text": "one two\nthree"}' --wait
//
// docs/guides/remote.md explains each call.

import { spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";

const token = process.env.MAINSPRING_TOKEN;
if (!token) {
  console.error("set MAINSPRING_TOKEN to a token of the role worker: mainspring tokens create node --role worker");
  process.exit(2);
}
const base = `${process.env.MAINSPRING_URL ?? "http://127.0.0.1:8080"}/api/v1/work`;
const queue = "node";
const concurrency = 10;
const leaseSeconds = 15;
const drainSeconds = Number(process.env.DRAIN_SECONDS ?? 10);

// What this worker runs. A handler gets the payload and its job, and returns the result.

const text = { type: "string" };
const definitions = {
  word_count: {
    arg_schema: { type: "object", required: ["text"], properties: { text } },
    max_attempts: 3,
    timeout: 60,
    // Counts line by line. An attempt that was cut short is resumed from the last checkpoint.
    async run({ text }, job) {
      const lines = text.split("\n");
      let { line, words } = job.checkpoint ?? { line: 0, words: 0 };
      for (; line < lines.length; line++) {
        job.signal.throwIfAborted();
        words += lines[line].split(/\s+/).filter(Boolean).length;
        job.print(`line ${line + 1}: ${words} words`);
        await job.progress(line + 1, lines.length, "counting");
        await job.saveCheckpoint({ line: line + 1, words });
      }
      return { words };
    },
  },
  greet: {
    arg_schema: { type: "object", required: ["name"], properties: { name: text } },
    // Runs a program. Its output and exit code are shown with the attempt.
    async run({ name }, job) {
      const script = "console.log('Hello, ' + process.argv[1]); console.error('greeted')";
      await job.spawn(process.execPath, ["-e", script, name]);
    },
  },
};

// Calls

class Refused extends Error {
  constructor({ code, detail }) {
    super(`${code}: ${detail}`);
    this.code = code;
  }
}

// Every call may be repeated. Refusals (4xx) are final; no answer, 429 and 5xx are not.
async function call(method, path, body, { signal, tries = 8 } = {}) {
  for (let attempt = 1; ; attempt++) {
    let answer;
    try {
      answer = await fetch(base + path, {
        method,
        headers: { Authorization: `Bearer ${token}` },
        body: body && JSON.stringify(body),
        signal,
      });
      if (answer.status === 204) return null;
      const content = await answer.json();
      if (answer.ok) return content;
      if (answer.status !== 429 && answer.status < 500) throw new Refused(content);
    } catch (error) {
      if (error instanceof Refused || signal?.aborted || attempt >= tries) throw error;
    }
    if (attempt >= tries) throw new Error(`${method} ${path}: ${answer.status}`);
    const pause = Number(answer?.headers.get("retry-after")) || Math.min(2 ** attempt / 10, 10);
    await sleep(pause * (500 + Math.random() * 500), undefined, { signal });
  }
}

// Jobs

class Job {
  constructor(worker, { job_id, fence, definition, payload, checkpoint }) {
    Object.assign(this, { id: job_id, definition, payload, checkpoint });
    this.path = `/workers/${worker}/jobs/${job_id}`;
    this.fence = fence;
    this.output = { stdout: "", stderr: "" };
    this.abort = new AbortController();
    this.signal = this.abort.signal;
  }

  progress(current, total, message) {
    return this.report("progress", { current, total, message });
  }

  saveCheckpoint(checkpoint) {
    return this.report("checkpoint", { checkpoint });
  }

  print(line) {
    this.keep("stdout", `${line}\n`);
  }

  spawn(program, args) {
    const child = spawn(program, args, { signal: this.signal, stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of ["stdout", "stderr"]) {
      child[stream].setEncoding("utf8").on("data", (some) => this.keep(stream, some));
    }
    return new Promise((resolve, reject) => {
      child.on("error", reject).on("close", (code) => {
        this.output.exit_code = code;
        code === 0 ? resolve() : reject(new Error(`${program} ended with the exit code ${code}`));
      });
    });
  }

  // The server keeps the last 64 KiB, so there is no need to send much more.
  keep(stream, some) {
    this.output[stream] = (this.output[stream] + some).slice(-100_000);
  }

  report(what, facts) {
    return call("POST", `${this.path}/${what}`, { fence: this.fence, ...facts });
  }

  async run() {
    try {
      const result = await definitions[this.definition].run(this.payload, this);
      await this.report("complete", { result, ...this.output });
    } catch (error) {
      await this.reportFailure(error);
    }
  }

  async reportFailure(error) {
    // Someone else has the job, or gets it: there is nothing to report.
    if (["lease_lost", "late_report", "worker_gone"].includes(error.code)) return;
    const reason = this.signal.reason;
    if (reason === "leaving") return;
    if (this.signal.aborted && reason !== "timeout") {
      await this.report("canceled", { reason, ...this.output });
      return;
    }
    const problem = reason === "timeout" ? "timed out" : String(error.stack ?? error);
    const retry = !(error instanceof Refused); // What was refused would be again.
    await this.report("fail", { error: problem.slice(0, 100_000), retry, ...this.output });
  }
}

// The worker

const running = new Map();
const stopping = new AbortController();
let worker;

async function register() {
  const declared = Object.entries(definitions).map(([key, { run, ...fields }]) => ({
    key, queue, revision: 1, ...fields,
  }));
  const answer = await call("POST", "/register", { definitions: declared });
  for (const { key, version, change, differs } of answer.definitions) {
    const how = differs.length ? `, which differs in ${differs.join(", ")}` : "";
    console.log(`definition ${key} is ${change}: version ${version}${how}`);
  }
}

async function open() {
  const facts = { name: "node", queues: [queue], concurrency, lease_seconds: leaseSeconds };
  worker = (await call("POST", "/workers", facts)).worker_id;
  console.log(`worker ${worker} is ready`);
}

function abortAll(reason) {
  for (const job of running.values()) job.abort.abort(reason);
}

async function renew() {
  const asked = worker;
  try {
    const path = `/workers/${asked}/heartbeat`;
    const { stop } = await call("POST", path, { lease_seconds: leaseSeconds }, { tries: 1 });
    for (const { job_id, reason } of stop) running.get(job_id)?.abort.abort(reason);
  } catch (error) {
    // Without its lease a worker must stop what it runs; the main loop opens a new one.
    if (error.code === "worker_gone" && asked === worker) abortAll("leaving");
    else console.error(`no heartbeat: ${error.message}`);
  }
}

function start(facts) {
  const job = new Job(worker, facts);
  running.set(job.id, job);
  job.done = job
    .run()
    .catch((error) => console.error(`job ${job.id}: ${error.message}`))
    .finally(() => running.delete(job.id));
}

async function claim() {
  // With `held`, jobs whose answer was lost on the way come again.
  const asked = {
    definitions: Object.keys(definitions),
    limit: concurrency - running.size,
    wait: 10,
    held: [...running.keys()],
  };
  const answer = await call("POST", `/workers/${worker}/claim`, asked, { signal: stopping.signal });
  answer.jobs.forEach(start);
}

async function work() {
  while (!stopping.signal.aborted) {
    try {
      if (running.size < concurrency) await claim();
      else await Promise.race([...running.values()].map((job) => job.done));
    } catch (error) {
      if (stopping.signal.aborted) return;
      if (error.code !== "worker_gone") throw error; // A wrong token, for example.
      abortAll("leaving");
      await Promise.all([...running.values()].map((job) => job.done));
      await open();
    }
  }
}

for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => stopping.abort());

await register();
await open();
const beat = setInterval(renew, (leaseSeconds * 1000) / 3);
await work();

// Finish what runs, for a while. What is left goes back to the queue, and loses no attempt.
const ended = Promise.all([...running.values()].map((job) => job.done));
await Promise.race([ended, sleep(drainSeconds * 1000, undefined, { ref: false })]);
abortAll("leaving");
clearInterval(beat);
await call("DELETE", `/workers/${worker}`).catch((error) => console.error(error.message));
console.log(`worker ${worker} has left`);
process.exit(0);
