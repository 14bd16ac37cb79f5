// tokenizer.json of the package tokenizers: byte-level BPE of it. What would change the ids and is not done here is
// refused by name.
#include <set>

#include "core/errors.h"
#include "core/json.h"
#include "data/byte_pair_readers.h"
#include "data/message_text.h"

namespace zt {
namespace {

using nlohmann::json;

class TokenizerFile {
 public:
  TokenizerFile(const json& file, const std::string& origin) : file_(file), origin_(origin) {}

  BytePairVocabulary read() {
    if (!file_.is_object() || !file_.contains("model") || !file_["model"].is_object()) {
      throw UserError(origin_ +
                      " is no tokenizer.json: it has no object \"model\"; name a tokenizer.json, a vocab.json with its "
                      "merges.txt (by these names), or a tiktoken file");
    }
    const json& model = file_["model"];
    check_model(model);
    check_cutting();
    BytePairVocabulary out;
    SpelledVocabulary spelled(member(model, "vocab"), origin_, out);
    out.whole_pieces = model.value("ignore_merges", json(false)) == true;
    read_merges(model, spelled);
    spelled.finish();
    read_added(spelled);
    check_unknown(model, out);
    return out;
  }

 private:
  [[noreturn]] void refuse(const std::string& what, const std::string& use) const {
    throw UserError(origin_ + ": " + what + "; " + use);
  }

  static std::string type_of(const json& part) {
    const auto found = part.is_object() ? part.find("type") : part.end();
    return part.is_object() && found != part.end() && found->is_string() ? found->get<std::string>() : std::string();
  }

  static const json& member(const json& object, const char* name) {
    static const json none;
    const auto found = object.find(name);
    return found == object.end() ? none : *found;
  }

  static bool is_unset(const json& value) { return value.is_null() || value == "" || value == false; }

  void check_model(const json& model) const {
    const std::string type = type_of(model);
    // Before model.type was written, only BPE had merges.
    if (type != "BPE" && !(type.empty() && model.contains("merges"))) {
      refuse("model.type is \"" + shown(type) + "\"",
             "of the kinds of models BPE is read: use the tokenizer of a GPT-2, or train one with zerotrain tokenize "
             "--train");
    }
    for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"}) {
      if (!is_unset(member(model, name))) {
        refuse(std::string("model.") + name + " is " + shown(member(model, name).dump()),
               "byte-level BPE without it is read: use a tokenizer whose pre_tokenizer is ByteLevel");
      }
    }
    if (const json& dropout = member(model, "dropout"); !dropout.is_null() && dropout != 0.0) {
      refuse("model.dropout is " + shown(dropout.dump()), "ids are the same every time here: set it to null");
    }
  }

  // What is done to the text before and after the model.
  void check_cutting() const {
    if (const json& normalizer = member(file_, "normalizer"); !normalizer.is_null()) {
      refuse("it has the normalizer " + shown(type_of(normalizer)),
             "texts are encoded byte for byte: use a tokenizer without one, as GPT-2's");
    }
    const json& cutter = member(file_, "pre_tokenizer");
    if (type_of(cutter) != "ByteLevel") {
      refuse(cutter.is_null() ? "it has no pre_tokenizer" : "its pre_tokenizer is " + shown(type_of(cutter)),
             "ByteLevel, which cuts by GPT-2's pattern, is read: use a tokenizer of that kind, or train one with "
             "zerotrain tokenize --train");
    }
    if (cutter.value("add_prefix_space", json(true)) != false) {
      refuse("pre_tokenizer.add_prefix_space is true",
             "no text is given a blank in front, or it would not come back as it was: set it to false");
    }
    if (cutter.value("use_regex", json(true)) != true) {
      refuse("pre_tokenizer.use_regex is false", "texts are cut by GPT-2's pattern: use a tokenizer that is, too");
    }
    if (const json& decoder = member(file_, "decoder"); !decoder.is_null() && type_of(decoder) != "ByteLevel") {
      refuse("its decoder is " + shown(type_of(decoder)), "ByteLevel is read: use a tokenizer of that kind");
    }
    const json& after = member(file_, "post_processor");
    if (!after.is_null() && type_of(after) != "ByteLevel") {
      refuse("its post_processor is " + shown(type_of(after)) + ", which adds tokens to texts",
             "texts are encoded as they are: set it to null");
    }
  }

  void read_merges(const json& model, SpelledVocabulary& spelled) const {
    const json& merges = member(model, "merges");
    if (!merges.is_array()) refuse("model.merges is not a list", "the file is not whole: get it again");
    for (std::size_t i = 0; i < merges.size(); ++i) {
      const json& merge = merges[i];
      const std::string place = origin_ + ": model.merges[" + std::to_string(i) + "]";
      if (merge.is_string()) {
        const std::string_view text = merge.get_ref<const std::string&>();
        const std::size_t space = text.find(' ');
        if (space != std::string_view::npos && text.find(' ', space + 1) == std::string_view::npos) {
          spelled.add_merge(text.substr(0, space), text.substr(space + 1), place);
          continue;
        }
      } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
        spelled.add_merge(merge[0].get_ref<const std::string&>(), merge[1].get_ref<const std::string&>(), place);
        continue;
      }
      throw UserError(place + " is " + shown(merge.dump(-1, ' ', false, json::error_handler_t::replace)) +
                      ", where two tokens should be, as in \"t h\"");
    }
  }

  void read_added(SpelledVocabulary& spelled) const {
    const json& added = member(file_, "added_tokens");
    if (added.is_null()) return;
    if (!added.is_array()) refuse("added_tokens is not a list", "the file is not whole: get it again");
    std::set<std::string> seen;
    for (const json& token : added) {
      const json& content = token.is_object() ? member(token, "content") : token;
      const json& id = token.is_object() ? member(token, "id") : token;
      if (!content.is_string() || !id.is_number_integer() || id.get<std::int64_t>() < 0 ||
          id.get<std::int64_t>() > 0x7fffffff) {
        refuse("an entry of added_tokens is " + shown(token.dump(-1, ' ', false, json::error_handler_t::replace)),
               "each has a content and an id from 0");
      }
      for (const char* name : {"single_word", "lstrip", "rstrip"}) {
        if (!is_unset(member(token, name))) {
          refuse(std::string(name) + " of the added token \"" + shown(content.get<std::string>()) + "\" is true",
                 "added tokens are found as they stand: set it to false");
        }
      }
      if (!seen.insert(content.get<std::string>()).second) continue;
      spelled.add_token(content.get<std::string>(), id.get<std::int64_t>(), member(token, "special") == true);
    }
  }

  // unk_token stands in for bytes that have no token: where all have one it has no effect.
  void check_unknown(const json& model, const BytePairVocabulary& out) const {
    if (is_unset(member(model, "unk_token"))) return;
    std::set<std::string> bytes;
    for (std::size_t id = 0; id < out.tokens.size(); ++id) {
      if (out.tokens[id].size() == 1 && !out.is_not_bytes[id]) bytes.insert(out.tokens[id]);
    }
    if (bytes.size() < 256) {
      refuse("model.unk_token is " + shown(member(model, "unk_token").dump()) + ", and only " +
                 std::to_string(bytes.size()) + " of the 256 bytes have tokens",
             "nothing may get lost here: train a vocabulary with all bytes, as zerotrain tokenize --train does");
    }
  }

  const json& file_;
  const std::string& origin_;
};

}  // namespace

BytePairVocabulary parse_tokenizer_json(std::string_view text, const std::string& origin) {
  const json file = parse_json_file(text, origin);
  return TokenizerFile(file, origin).read();
}

}  // namespace zt
