"""How long a key takes to show: run in the page before it is typed into."""

#: From the key event to the frame in which its result was painted.
KEYSTROKES = """() => {
  window.keystrokes = [];
  document.querySelector(".cdiag-search").addEventListener("input", (event) => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => window.keystrokes.push(performance.now() - event.timeStamp);
    requestAnimationFrame(() => channel.port2.postMessage(null));
  }, true);
}"""
