/** Whether what is behind an element is dark: the first background that is not transparent decides, in every host. */
function isDark(el: Element): boolean {
  for (let at: Element | null = el; at; at = at.parentElement) {
    const [r, g, b, a = 1] = (getComputedStyle(at).backgroundColor.match(/[\d.]+/g) ?? []).map(
      Number,
    );
    if (r !== undefined && a > 0.5) return 0.299 * r + 0.587 * g! + 0.114 * b! < 128;
  }
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

/** Keep `data-theme` of the root in step with the host; returns what ends that. */
export function followTheme(root: HTMLElement): () => void {
  const follow = () => {
    const theme = root.parentElement && isDark(root.parentElement) ? "dark" : "light";
    if (root.dataset.theme !== theme) root.dataset.theme = theme;
  };
  const seen = new MutationObserver(() => requestAnimationFrame(follow));
  for (const one of [document.documentElement, document.body])
    seen.observe(one, { attributes: true });
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", follow);
  follow();
  requestAnimationFrame(follow); // a host may render into an element that is put into the page afterwards
  return () => {
    seen.disconnect();
    system.removeEventListener("change", follow);
  };
}
