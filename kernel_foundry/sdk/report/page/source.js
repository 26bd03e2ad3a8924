// Where the data of the page comes from: this machine's server, or the report that holds it.

/** The data of this page. */
export async function openSource() {
  const held = document.getElementById("data");
  if (!held) return new LiveData();
  const data = JSON.parse(await unpacked(held.textContent));
  return data.suite ? new HeldSuite(data.suite) : new HeldRun(data);
}

class LiveData {
  isLive = true;

  runs() {
    return asked("/api/runs");
  }

  suites() {
    return asked("/api/suites");
  }

  suite(name) {
    return asked(`/api/suites/${name}`);
  }

  run(name) {
    return asked(`/api/runs/${name}`);
  }

  account(run) {
    return asked(`/api/runs/${run}/account`);
  }

  evaluation(run, sequence) {
    return asked(`/api/runs/${run}/evaluations/${sequence}`);
  }

  exchanges(run, selection) {
    return asked(`/api/runs/${run}/exchanges/${selection}`);
  }

  sweep(run, name) {
    return asked(`/api/runs/${run}/sweeps/${name}`);
  }

  steering(run) {
    return asked(`/api/runs/${run}/steering`);
  }

  /** Ask something of a run; returns its steering then. */
  steer(run, what) {
    const headers = { "Content-Type": "application/json" };
    return asked(`/api/runs/${run}/steering`, { method: "POST", headers, body: JSON.stringify(what) });
  }

  /** Tell `listener` of rows, the run's state and failures as they come; returns what ends that. */
  follow(run, listener) {
    let hasFailed = false;
    const events = new EventSource(`/api/runs/${run}/events`);
    events.addEventListener("rows", (event) => listener.onRows(JSON.parse(event.data)));
    events.addEventListener("state", (event) => listener.onState(JSON.parse(event.data)));
    events.addEventListener("failure", (event) => {
      hasFailed = true;
      listener.onFailure(JSON.parse(event.data));
    });
    events.addEventListener("open", () => {
      hasFailed = false;
      listener.onFailure("");
    });
    events.addEventListener("error", () => {
      // A stream ends with its run and is asked for again: only a refusal is a failure.
      if (events.readyState === EventSource.CLOSED && !hasFailed) listener.onFailure("the server does not answer");
    });
    return () => events.close();
  }
}

class HeldSuite {
  isLive = false;

  constructor(page) {
    this.page = page;
    this.place = ["suite", page.suite];
  }

  async suite() {
    return this.page;
  }
}

class HeldRun {
  isLive = false;

  constructor(data) {
    this.data = data;
    this.place = ["run", data.run.run];
  }

  async run() {
    return this.data.run;
  }

  async account() {
    return this.data.account;
  }

  async evaluation(_run, sequence) {
    return held(this.data.evaluations, sequence);
  }

  async exchanges(_run, selection) {
    return held(this.data.exchanges, selection);
  }

  async sweep(_run, name) {
    return held(this.data.sweeps, name);
  }

  follow(_run, listener) {
    listener.onRows(this.data.rows);
    listener.onState(this.data.run.state);
    return () => {};
  }
}

async function asked(path, options) {
  const answer = await fetch(path, options);
  if (!answer.ok) throw new Error((await answer.text()).trim());
  return answer.json();
}

function held(kept, key) {
  if (!Object.hasOwn(kept, key)) throw new Error("not kept in this report; `kfoundry ui` shows it");
  return kept[key];
}

async function unpacked(base64) {
  const bytes = Uint8Array.from(atob(base64.trim()), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}
