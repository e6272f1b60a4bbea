// Makes the search work on pages that are opened from a folder. The search of Material for MkDocs runs in a worker, and browsers start no
// worker from a file. On such pages this class replaces `Worker`: it runs the script in a hidden frame and passes the messages.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.scope = frame.contentWindow;
      this.scope.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = this.scope.document.createElement("script");
      this.started = new Promise((resolve) => (script.onload = resolve));
      script.src = new URL(url, location.href);
      this.scope.document.head.append(script);
    }

    postMessage(data) {
      this.started.then(() => this.scope.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
