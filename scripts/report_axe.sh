#!/usr/bin/env bash
# Runs axe-core, a checker of accessibility, on a report in headless Chromium, light and dark, with every table unfolded.
# Prints what it finds and ends with 1 where that is a violation.
#
#   scripts/report_axe.sh axe.min.js PAGE.html      (axe.min.js is in npm's axe-core and in PyPI's axe-playwright-python)
#
# CHROMIUM names the browser (Debian: apt-get install chromium), WAIT the milliseconds that it may take (240000).
set -euo pipefail

[ $# -eq 2 ] || { sed -n '2,7p' "${BASH_SOURCE[0]}" | cut -c3- >&2; exit 2; }
browser=${CHROMIUM:-chromium}
command -v "$browser" >/dev/null || { echo "report_axe: $browser is missing (Debian: apt-get install chromium)" >&2; exit 2; }
profile=$(mktemp -d)
trap 'rm -rf "$profile"' EXIT

# The page with the checker behind it; what it finds becomes the page.
{
  cat "$2"
  echo '<script>'
  cat "$1"
  cat <<'JS'
</script><script>
for (const folded of document.querySelectorAll('details')) folded.open = true;
axe.run(document, { resultTypes: ['violations', 'incomplete'] }).then(found => {
  const line = (kind, one) => `${kind} ${one.id} (${one.impact}): ${one.help}; ${one.nodes.length} place(s), first ` +
    one.nodes[0].html.slice(0, 160) + ' ' + (one.nodes[0].any[0]?.message ?? '');
  const lines = [`axe ${axe.version}: ${found.passes.length} rules passed, ${found.violations.length} violated`,
    ...found.violations.map(one => line('violated', one)), ...found.incomplete.map(one => line('to look at', one))];
  const result = document.createElement('pre');
  result.textContent = lines.join('\n');
  document.body.replaceChildren(result);
});
</script>
JS
} >"$profile/page.html"

status=0
for scheme in 1 0; do
  timeout 400 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
    --user-data-dir="$profile/browser" --blink-settings=preferredColorScheme=$scheme --window-size=1280,900 \
    --timeout="${WAIT:-240000}" --dump-dom "file://$profile/page.html" 2>"$profile/log" >"$profile/dom" || { cat "$profile/log" >&2; exit 1; }
  [ "$scheme" = 1 ] && echo "light:" || echo "dark:"
  found=$(sed -n '/<pre>axe /,/<\/pre>/p' "$profile/dom" | sed 's/.*<pre>//; s/<\/pre>.*//; s/&lt;/</g; s/&gt;/>/g; s/&amp;/\&/g')
  [ -n "$found" ] || { echo "report_axe: the checker did not finish" >&2; exit 1; }
  printf '%s\n' "$found"
  if grep -q '^violated' <<<"$found"; then status=1; fi
done
exit $status
