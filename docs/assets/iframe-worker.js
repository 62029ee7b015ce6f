// Browsers start no worker from a file. Where the site is opened from a folder, a hidden frame does a
// worker's work, so that search needs no server.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      // What the worker says comes here, and what it asks for is loaded in its frame.
      inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.importScripts = (...urls) => Promise.all(urls.map(each => this.load(each)));
      // Nothing is said before it listens.
      this.ready = this.load(url);
    }

    load(url) {
      const script = this.frame.contentDocument.createElement("script");
      script.src = url;
      const loaded = new Promise((done, failed) => Object.assign(script, { onload: done, onerror: failed }));
      this.frame.contentDocument.body.append(script);
      return loaded;
    }

    postMessage(data) {
      const inside = this.frame.contentWindow;
      this.ready.then(() => inside.dispatchEvent(new inside.MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
