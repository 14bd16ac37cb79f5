#!/usr/bin/env bash
# Takes pictures of a report (zerotrain report) in headless Chromium, for somebody to look at: as wide as a laptop and as
# a telephone, light and dark, and as printed.
#
#   scripts/report_screenshots.sh PAGE.html DIRECTORY      (Debian: apt-get install chromium; pdftoppm for the print)
#
# CHROMIUM names the browser. The pictures are as long as LENGTH pixels (5200).
set -euo pipefail

[ $# -eq 2 ] || { sed -n '2,7p' "${BASH_SOURCE[0]}" | cut -c3- >&2; exit 2; }
page=$(realpath "$1")
mkdir -p "$2"
directory=$(realpath "$2")
browser=${CHROMIUM:-chromium}
command -v "$browser" >/dev/null || { echo "report_screenshots: $browser is missing (Debian: apt-get install chromium)" >&2; exit 2; }
profile=$(mktemp -d)
trap 'rm -rf "$profile"' EXIT

run_browser() {
  timeout 180 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars --no-first-run \
    --user-data-dir="$profile" "$@" >"$profile/log" 2>&1 || { cat "$profile/log" >&2; exit 1; }
}

# A window may not be narrower than 500 pixels, so the page is shown in a frame of the width that is asked for.
shot() {
  local name=$1 width=$2 length=$3 scheme=$4
  shift 4
  cat >"$profile/frame.html" <<HTML
<!DOCTYPE html><html lang="en" style="color-scheme: $scheme"><body style="margin: 0">
<iframe src="file://$page" style="border: 0; display: block; width: ${width}px; height: ${length}px; color-scheme: $scheme"></iframe>
HTML
  run_browser --allow-file-access-from-files --window-size="$width,$length" "$@" \
    --screenshot="$directory/$name.png" "file://$profile/frame.html"
  echo "$directory/$name.png"
}

length=${LENGTH:-5200}
dark=(--blink-settings=preferredColorScheme=0)
light=(--blink-settings=preferredColorScheme=1)
shot wide-light 1280 "$length" light "${light[@]}"
shot wide-dark 1280 "$length" dark "${dark[@]}"
shot narrow-light 390 "$((length * 3 / 2))" light "${light[@]}"
shot narrow-dark 390 "$((length * 3 / 2))" dark "${dark[@]}"
run_browser --no-pdf-header-footer --print-to-pdf="$directory/print.pdf" "file://$page"
echo "$directory/print.pdf"
if command -v pdftoppm >/dev/null; then pdftoppm -r 60 -png "$directory/print.pdf" "$directory/print"; fi
