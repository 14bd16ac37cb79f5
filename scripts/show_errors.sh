#!/usr/bin/env bash
# Gives zerotrain a dozen wrong configs and command lines and prints, as Markdown, each with what the program says and its
# exit code: docs/errors.md is this script's output.
#
#   scripts/show_errors.sh > docs/errors.md
#
# ZEROTRAIN names the program (build/zerotrain).
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
zerotrain=${ZEROTRAIN:-$root/build/zerotrain}
zerotrain=$(realpath "$zerotrain") || exit 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
printf 'In the beginning God created the heaven and the earth.\n' >short.txt
printf 'And the earth was without form, and void;\n%.0s' {1..200} >text.txt
: >empty.txt
printf '%s\n' 'age,height,red,y' '31,1.78,0,4.1' '28,,1,3.9' '45,1.69,0,4.4' '52,1.71,no,5.0' >table.csv
printf '%s\n' 'age;y' '31;4.1' >semicolons.csv
printf '%s\n' '{"prompt": "2 + 2 = ", "completion": "4\n"}' '{"prompt": "2 + 3 = ", "answer": "5\n"}' >no-completion.jsonl
printf '%s\n' '{"prompt": "2 + 2 = ", "completion": "4\n"}' '{"prompt": "2 + 3 = " "completion": "5\n"}' >no-comma.jsonl
printf '\000\000\010\003\000\000\000\003\000\000\000\002\000\000\000\002twelve minus' >images
printf '\000\000\010\001\000\000\000\003\000\001\002' >labels
head -c 27 images >cut-images
gzip --no-name <images | head -c 30 >cut-images.gz
mkdir -p runs/earlier
echo '{}' >runs/earlier/summary.json

# What the program said, without this folder's name and this moment's free memory.
said() { sed "s|$folder/||g; s|$folder|.|g; s|only [0-9.]* .B are free|only ... are free|" out; }

# show TITLE ARGUMENTS...: the config is what stands on stdin.
# shellcheck disable=SC2016  # the backquotes are Markdown
show() {
  local title=$1 status=0
  shift
  cat >config.json
  "$zerotrain" "$@" >out 2>&1 </dev/null || status=$?
  printf '\n## %s\n\n' "$title"
  if [ -s config.json ]; then printf '```jsonc\n%s\n```\n\n' "$(cat config.json)"; fi
  printf '```console\n$ zerotrain %s\n%s\n$ echo $?\n%s\n```\n' "$*" "$(said)" "$status"
}

cat <<'TEXT'
# What zerotrain says to mistakes

Everything that can be found before the first step ends the program with code 2 and one message; a config is checked
whole, so that all its mistakes are told at once. The following was written by `scripts/show_errors.sh`, which runs the
program on each of these.
TEXT

show "Several mistakes at once" --config config.json <<'JSON'
{
  "train_batch_size": 16,
  "optimiser": { "type": "AdamW" },
  "zero_optimization": { "stage": 4 },
  "model": { "type": "gpt", "n_layers": 6, "n_head": 5, "n_embd": 384 },
  "data": { "type": "text", "path": "text.txt", "tokenizer": "characters" },
  "training": { "max_steps": "many" }
}
JSON
show "A batch that does not divide" --ranks 3 --config config.json <<'JSON'
{
  "train_batch_size": 16,
  "train_micro_batch_size_per_gpu": 4,
  "model": { "type": "gpt", "n_positions": 32 },
  "data": { "type": "text", "path": "text.txt" }
}
JSON
show "No batch size" --config config.json <<'JSON'
{
  "gradient_accumulation_steps": 2,
  "model": { "type": "mlp", "layers": [8, 1] },
  "data": { "type": "synthetic", "task": "regression" }
}
JSON
show "A syntax error" --config config.json <<'JSON'
{
  "train_batch_size": 4
  "model": { "type": "mlp", "layers": [8, 1] },
  "data": { "type": "synthetic", "task": "regression" }
}
JSON
show "A promise that is not kept here" --config config.json <<'JSON'
{
  "train_batch_size": 4,
  "optimizer": { "type": "OneBitAdam", "params": { "lr": 1e-3 } },
  "model": { "type": "mlp", "layers": [8, 1] },
  "data": { "type": "synthetic", "task": "regression" }
}
JSON
show "A missing text" --config config.json <<'JSON'
{
  "train_batch_size": 4,
  "model": { "type": "gpt", "n_positions": 32 },
  "data": { "type": "text", "path": "no-such-text.txt" }
}
JSON
show "A text that is too short" --config config.json <<'JSON'
{
  "train_batch_size": 4,
  "model": { "type": "gpt", "n_positions": 32 },
  "data": { "type": "text", "path": "short.txt" }
}
JSON
show "An empty text" --config config.json <<'JSON'
{
  "train_batch_size": 4,
  "model": { "type": "gpt", "n_positions": 32 },
  "data": { "type": "text", "path": "empty.txt" }
}
JSON
show "A table with holes" --config config.json <<'JSON'
{
  "train_batch_size": 2,
  "model": { "type": "mlp", "layers": [3, 8, 1] },
  "data": { "type": "csv", "path": "table.csv", "target": "y" }
}
JSON
show "A target that the table does not have" --config config.json <<'JSON'
{
  "train_batch_size": 2,
  "model": { "type": "mlp", "layers": [3, 8, 1] },
  "data": { "type": "csv", "path": "table.csv", "target": ["heigth"] }
}
JSON
show "A table that is separated otherwise" --config config.json <<'JSON'
{
  "train_batch_size": 1,
  "model": { "type": "mlp", "layers": [1, 8, 1] },
  "data": { "type": "csv", "path": "semicolons.csv", "target": ["y"] }
}
JSON
show "A line without a completion" --config config.json <<'JSON'
{
  "train_batch_size": 1,
  "model": { "type": "gpt", "n_positions": 32 },
  "data": { "type": "text", "path": "no-completion.jsonl" }
}
JSON
show "A line that is not JSON" --config config.json <<'JSON'
{
  "train_batch_size": 1,
  "model": { "type": "gpt", "n_positions": 32 },
  "data": { "type": "text", "path": "no-comma.jsonl" }
}
JSON
show "Images that are cut short" --config config.json <<'JSON'
{
  "train_batch_size": 1,
  "model": { "type": "mlp", "layers": [4, 8, 3], "loss": "cross_entropy" },
  "data": { "type": "idx", "images": "cut-images", "labels": "labels" }
}
JSON
show "A gzip that is cut short" --config config.json <<'JSON'
{
  "train_batch_size": 1,
  "model": { "type": "mlp", "layers": [4, 8, 3], "loss": "cross_entropy" },
  "data": { "type": "idx", "images": "cut-images.gz", "labels": "labels" }
}
JSON
show "Images of another size than the model's inputs" --config config.json <<'JSON'
{
  "train_batch_size": 1,
  "model": { "type": "mlp", "layers": [784, 8, 3], "loss": "cross_entropy" },
  "data": { "type": "idx", "images": "images", "labels": "labels" }
}
JSON
show "Data for another model" --config config.json <<'JSON'
{
  "train_batch_size": 4,
  "model": { "type": "mlp", "layers": [8, 1] },
  "data": { "type": "text", "path": "text.txt" }
}
JSON
show "A directory that holds a run" --config config.json --output runs/earlier <<'JSON'
{
  "train_batch_size": 4,
  "model": { "type": "mlp", "layers": [8, 1] },
  "data": { "type": "synthetic", "task": "regression" }
}
JSON
show "An unknown option" --confg config.json </dev/null
show "A verb that there is not" inspekt runs/earlier </dev/null
show "More memory than there is" --config config.json <<'JSON'
{
  "train_batch_size": 8,
  "model": { "type": "gpt", "n_layer": 96, "n_head": 96, "n_embd": 12288, "n_positions": 2048, "vocab_size": 50304 },
  "data": { "type": "synthetic", "task": "tokens" }
}
JSON
