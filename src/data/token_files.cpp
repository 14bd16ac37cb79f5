#include "data/token_files.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <system_error>

#include "core/errors.h"
#include "data/file_kind.h"
#include "data/message_text.h"

namespace zt {
namespace {

template <typename T>
T number_at(std::string_view bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// Files of llm.c and its kin that are taken for token files by mistake.
const char* other_file_of_llm_c(std::int32_t magic) {
  switch (magic) {
    case 20240522: return "an llm.c file of questions for evaluation (HellaSwag, MMLU)";
    case 20240326:
    case 20240803: return "an llm.c model";
    case 20240327: return "an llm.c debug state";
    case 20240527: return "an llm.c optimizer state";
    case 20240328: return "an llm.c tokenizer, for decoding only";
    default: return nullptr;
  }
}

std::string index_beside(const std::string& path) {
  return std::filesystem::path(path).replace_extension(".idx").string();
}

bool has_index(const std::string& path) {
  std::error_code error;
  return path.ends_with(".bin") && std::filesystem::is_regular_file(index_beside(path), error);
}

}  // namespace

const char* name_of(TokenFormat format) {
  return format == TokenFormat::llm_c ? "llm.c" : format == TokenFormat::nanogpt ? "nanogpt" : "megatron";
}

std::size_t TokenFile::bytes_of(Element element) {
  switch (element) {
    case Element::u8: return 1;
    case Element::i16:
    case Element::u16: return 2;
    case Element::i32: return 4;
    case Element::i64: return 8;
  }
  return 8;
}

// Calls f with a pointer to the first token; files may lie at odd addresses, so it is one to bytes, with a type beside.
template <typename F>
auto TokenFile::visit(F&& f) const {
  const char* data = file_->bytes().data() + header_;
  switch (element_) {
    case Element::u8: return f(data, std::uint8_t{});
    case Element::i16: return f(data, std::int16_t{});
    case Element::u16: return f(data, std::uint16_t{});
    case Element::i32: return f(data, std::int32_t{});
    case Element::i64: break;
  }
  return f(data, std::int64_t{});
}

void TokenFile::copy(std::int64_t first, std::span<std::int32_t> out) const {
  visit([&](const char* data, auto type) {
    using T = decltype(type);
    data += static_cast<std::size_t>(first) * sizeof(T);
    for (std::size_t i = 0; i < out.size(); ++i) {
      T value;
      std::memcpy(&value, data + i * sizeof(T), sizeof(T));
      if constexpr (sizeof(T) == 8) {
        out[i] = value < 0 || value > std::numeric_limits<std::int32_t>::max() ? -1 : static_cast<std::int32_t>(value);
      } else {
        out[i] = static_cast<std::int32_t>(value);
      }
    }
  });
}

std::uint32_t TokenFile::largest(std::int64_t first, std::int64_t count) const {
  return visit([&](const char* data, auto type) {
    using T = decltype(type);
    data += static_cast<std::size_t>(first) * sizeof(T);
    std::uint32_t largest = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      T value;
      std::memcpy(&value, data + i * sizeof(T), sizeof(T));
      std::uint32_t id;
      if constexpr (sizeof(T) == 8) {
        id = value < 0 || value > 0x7fffffff ? 0xffffffff : static_cast<std::uint32_t>(value);
      } else {
        id = static_cast<std::uint32_t>(static_cast<std::int32_t>(value));
      }
      largest = std::max(largest, id);
    }
    return largest;
  });
}

std::int64_t TokenFile::largest_possible() const {
  return element_ == Element::u8 ? 0xff : element_ == Element::u16 ? 0xffff : std::numeric_limits<std::int64_t>::max();
}

std::int64_t TokenFile::offset_of(std::int64_t token) const {
  return static_cast<std::int64_t>(header_) + token * static_cast<std::int64_t>(bytes_of(element_));
}

void TokenFile::fail(const std::string& what) const { throw UserError(origin_of(key_, path_) + what); }

TokenFile::TokenFile(const std::string& path, const std::string& key, const std::string& format)
    : path_(path), key_(key), file_(std::make_unique<MappedFile>(path, key, "a token file")) {
  format_ = detect(format);
  switch (format_) {
    case TokenFormat::llm_c: open_llm_c(); break;
    case TokenFormat::nanogpt: open_nanogpt(); break;
    case TokenFormat::megatron: open_megatron(); break;
  }
}

TokenFormat TokenFile::detect(const std::string& format) const {
  for (const TokenFormat one : {TokenFormat::llm_c, TokenFormat::nanogpt, TokenFormat::megatron}) {
    if (format == name_of(one)) return one;
  }
  const std::string_view bytes = file_->bytes();
  if (const std::string packed = packed_in_words(bytes); !packed.empty()) fail(" " + packed);
  if (bytes.starts_with("\x1f\x8b")) fail(" is packed by gzip; token files are mapped as they lie: unpack it first");
  if (bytes.starts_with("BIN.TOK\n")) {
    fail(" is a token file of LLM.Q, which is not read; write it anew with zerotrain tokenize, or as llm.c's");
  }
  if (has_index(path_)) return TokenFormat::megatron;
  const std::int32_t magic = bytes.size() >= 4 ? number_at<std::int32_t>(bytes, 0) : 0;
  if (magic == llm_c_magic || magic == llm_c_llama3_magic) return TokenFormat::llm_c;
  if (const char* other = other_file_of_llm_c(magic)) fail(std::string(" is ") + other + "; name a token file");
  const std::string_view start = bytes.substr(0, 4096);
  if (start.size() >= 32 && start.find('\0') == std::string_view::npos && binary_in_words(start).empty()) {
    fail(
        " looks like text; use \"type\": \"text\", write its tokens with zerotrain tokenize, or set data.format to say "
        "what it is");
  }
  return TokenFormat::nanogpt;
}

void TokenFile::open_llm_c() {
  const std::string_view bytes = file_->bytes();
  if (bytes.size() < llm_c_header_bytes) {
    fail(" has " + counted(static_cast<std::int64_t>(bytes.size()), "byte") +
         ", less than the 1024 of an llm.c header; the file is cut short");
  }
  const auto magic = number_at<std::int32_t>(bytes, 0);
  const auto version = number_at<std::int32_t>(bytes, 4);
  const auto count = number_at<std::int32_t>(bytes, 8);
  if (magic != llm_c_magic && magic != llm_c_llama3_magic) {
    const char* other = other_file_of_llm_c(magic);
    fail(other != nullptr ? std::string(" is ") + other + "; name a token file"
                          : " starts with " + std::to_string(magic) +
                                ", not with llm.c's 20240520 (or 20240801); set data.format to what it is");
  }
  const bool is_llama3 = magic == llm_c_llama3_magic;
  if (is_llama3 ? version != 7 : version != 1 && version != 2) {
    fail(" is of version " + std::to_string(version) + ", and version " + (is_llama3 ? "7 is" : "1 or 2 is") +
         " known; write it anew");
  }
  header_ = llm_c_header_bytes;
  const auto held = static_cast<std::int64_t>(bytes.size() - header_);
  // Version 2 leaves the width to the size.
  const bool is_wide = is_llama3 || (version == 2 && held == 4 * std::int64_t{count});
  element_ = is_wide ? Element::i32 : Element::u16;
  const std::int64_t width = is_wide ? 4 : 2;
  if (count < 0 || held != width * std::int64_t{count}) {
    fail(" says that it holds " + std::to_string(count) + " tokens of " + std::to_string(width) + " bytes, but has " +
         std::to_string(held) + " bytes behind its header; the file is cut short or damaged: write it anew");
  }
  if (count == 0) fail(" holds no tokens; name one with some");
  size_ = count;
}

void TokenFile::open_nanogpt() {
  const std::string_view bytes = file_->bytes();
  if (bytes.size() % 2 != 0) {
    fail(" has " + std::to_string(bytes.size()) +
         " bytes, an odd number, and nanoGPT's tokens have two each; the file is cut short, or not one of nanoGPT's: "
         "data.format says what it is");
  }
  element_ = Element::u16;
  size_ = static_cast<std::int64_t>(bytes.size() / 2);
}

void TokenFile::open_megatron() {
  if (!path_.ends_with(".bin"))
    fail(" does not end in .bin; Megatron's files are NAME.bin and NAME.idx: name the .bin");
  const std::string index_path = index_beside(path_);
  const MappedFile index_file(index_path, key_, "Megatron's index of the .bin");
  const std::string_view index = index_file.bytes();
  const auto fail_index = [&](const std::string& what) { throw UserError(origin_of(key_, index_path) + what); };
  if (!index.starts_with(std::string_view(megatron_magic, 9))) {
    fail_index(" does not start with MMIDIDX, as Megatron's index files do; name another, or write it anew");
  }
  if (index.size() < megatron_header_bytes) fail_index(" is shorter than its header of 34 bytes: it is cut short");
  const auto version = number_at<std::uint64_t>(index, 9);
  if (version != 1) fail_index(" is of version " + std::to_string(version) + ", and version 1 is known; write it anew");
  const auto code = number_at<std::uint8_t>(index, 17);
  switch (code) {
    case 1: element_ = Element::u8; break;
    case 3: element_ = Element::i16; break;
    case 4: element_ = Element::i32; break;
    case 5: element_ = Element::i64; break;
    case 8: element_ = Element::u16; break;
    default:
      fail_index(" has the element type " + std::to_string(code) +
                 "; tokens are of type 1 (8 bits), 3 or 8 (16 bits), 4 (32 bits) or 5 (64 bits)");
  }
  const auto sequences = number_at<std::uint64_t>(index, 18);
  const auto bounds = number_at<std::uint64_t>(index, 26);
  const std::size_t room = index.size() - megatron_header_bytes;
  // 12 bytes a sequence and 8 a bound; newer files have a byte more a sequence.
  const bool fits = sequences <= room / 12 && bounds <= room / 8 &&
                    (room == 12 * sequences + 8 * bounds || room == 13 * sequences + 8 * bounds);
  if (!fits) {
    fail_index(" says that it has " + std::to_string(sequences) + " sequences and " + std::to_string(bounds) +
               " bounds of documents, which does not fit its " + std::to_string(index.size()) +
               " bytes; it is cut short or damaged: write it anew");
  }
  const auto width = static_cast<std::int64_t>(bytes_of(element_));
  const std::size_t lengths = megatron_header_bytes, pointers = lengths + 4 * sequences,
                    documents = pointers + 8 * sequences;
  std::vector<std::int64_t> starts;  // of sequences, in tokens
  starts.reserve(sequences + 1);
  std::int64_t total = 0;
  const auto most = static_cast<std::int64_t>(file_->bytes().size()) / width;
  for (std::size_t i = 0; i < sequences; ++i) {
    const std::int64_t length = number_at<std::int32_t>(index, lengths + 4 * i);
    const auto pointer = number_at<std::int64_t>(index, pointers + 8 * i);
    if (length < 0 || length > most - total || pointer != total * width) {
      fail_index(": sequence " + std::to_string(i) + " (from 0) has " + std::to_string(length) + " tokens from byte " +
                 std::to_string(pointer) + " on; it should start at byte " + std::to_string(total * width) +
                 ", behind the one before, and end within " + file_name(path_) +
                 "; the pair is damaged: write it anew");
    }
    starts.push_back(total);
    total += length;
  }
  starts.push_back(total);
  if (total * width != static_cast<std::int64_t>(file_->bytes().size())) {
    fail_index(" counts " + counted(total, "token") + " of " + std::to_string(width) + " bytes, but " +
               file_name(path_) + " has " + std::to_string(file_->bytes().size()) +
               " bytes; the two do not belong together, or one is cut short");
  }
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < bounds; ++i) {
    const auto bound = number_at<std::uint64_t>(index, documents + 8 * i);
    if (bound > sequences || bound < before || (i == 0 && bound != 0)) {
      fail_index(": document " + std::to_string(i) + " (from 0) starts with sequence " + std::to_string(bound) +
                 ", which is none of the " + std::to_string(sequences) + " or comes before the last; write it anew");
    }
    before = bound;
    const std::int64_t start = starts[bound];
    if (start < total && (documents_.empty() || documents_.back() != start)) documents_.push_back(start);
  }
  size_ = total;
}

}  // namespace zt
