"""JavaScript that measures how long a key takes to show. Run it in the page before typing."""

#: Measures from the key event to the frame that paints its result, in ms.
KEYSTROKES = """() => {
  window.keystrokes = [];
  document.querySelector(".cdiag-search").addEventListener("input", (event) => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => window.keystrokes.push(performance.now() - event.timeStamp);
    requestAnimationFrame(() => channel.port2.postMessage(null));
  }, true);
}"""
