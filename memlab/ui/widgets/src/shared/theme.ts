/** Return whether an element has a dark background: its nearest ancestor with an opaque background decides. */
function isDark(element: Element): boolean {
  for (let ancestor: Element | null = element; ancestor; ancestor = ancestor.parentElement) {
    const [r, g, b, alpha = 1] = (
      getComputedStyle(ancestor).backgroundColor.match(/[\d.]+/g) ?? []
    ).map(Number);
    // The weights are those of perceived brightness in ITU-R BT.601.
    if (r !== undefined && alpha > 0.5) return 0.299 * r + 0.587 * g! + 0.114 * b! < 128;
  }
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

/** Update `data-theme` of a root whenever its host changes the theme. Returns a function that stops it. */
export function followTheme(root: HTMLElement): () => void {
  const follow = () => {
    const theme = root.parentElement && isDark(root.parentElement) ? "dark" : "light";
    if (root.dataset.theme !== theme) root.dataset.theme = theme;
  };
  const observer = new MutationObserver(() => requestAnimationFrame(follow));
  for (const element of [document.documentElement, document.body])
    observer.observe(element, { attributes: true });
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", follow);
  follow();
  // A host may render into an element that it adds to the page afterwards.
  requestAnimationFrame(follow);
  return () => {
    observer.disconnect();
    system.removeEventListener("change", follow);
  };
}
