#include "data/file_kind.h"

#include <algorithm>
#include <array>

#include "core/errors.h"

namespace zt {
namespace {

using namespace std::string_view_literals;

// First bytes from the packers' own descriptions of their formats.
struct Packer {
  std::string_view magic, name, command;
};
constexpr std::array<Packer, 12> packers = {{{"\x1f\x8b\x08"sv, "gzip twice", "gunzip"},
                                             {"PK\x03\x04"sv, "zip", "unzip"},
                                             {"PK\x05\x06"sv, "zip", "unzip"},
                                             {"PK\x07\x08"sv, "zip", "unzip"},
                                             {"\xfd"
                                              "7zXZ\0"sv,
                                              "xz", "unxz"},
                                             {"\x28\xb5\x2f\xfd"sv, "zstd", "unzstd"},
                                             {"\x04\x22\x4d\x18"sv, "lz4", "unlz4"},
                                             {"7z\xbc\xaf\x27\x1c"sv, "7-Zip", "7z x"},
                                             {"Rar!\x1a\x07"sv, "rar", "unrar x"},
                                             {"LZIP\x01"sv, "lzip", "lzip --decompress"},
                                             {"\x1f\x9d"sv, "compress", "uncompress"},
                                             {"\x1f\xa0"sv, "compress", "uncompress"}}};

bool is_bzip2(std::string_view bytes) {
  constexpr std::string_view block = "\x31\x41\x59\x26\x53\x59"sv;  // pi; of an empty file the end: its root
  constexpr std::string_view end = "\x17\x72\x45\x38\x50\x90"sv;
  if (!bytes.starts_with("BZh") || bytes.size() < 10 || bytes[3] < '1' || bytes[3] > '9') return false;
  const std::string_view rest = bytes.substr(4, 6);
  return rest == block || rest == end;
}

bool is_tar(std::string_view bytes) { return bytes.size() >= 512 && bytes.substr(257, 5) == "ustar"; }

std::string packed_by(std::string_view name, std::string_view command) {
  return "looks packed by " + std::string(name) + ": only gzip is unpacked" +
         (name == "gzip twice" ? ", and once" : "") + "; unpack it first (" + std::string(command) + " FILE)";
}

}  // namespace

std::string packed_in_words(std::string_view bytes) {
  for (const Packer& packer : packers) {
    if (bytes.starts_with(packer.magic)) return packed_by(packer.name, packer.command);
  }
  if (is_bzip2(bytes)) return packed_by("bzip2", "bunzip2");
  if (is_tar(bytes)) return packed_by("tar", "tar xf");
  return {};
}

std::string binary_in_words(std::string_view bytes) {
  if (bytes.starts_with("\xff\xfe") || bytes.starts_with("\xfe\xff")) return "is text in UTF-16";
  const std::string_view first = bytes.substr(0, 4096);
  std::array<std::size_t, 2> zeros{};  // at even and at odd places
  std::size_t strange = 0;
  for (std::size_t i = 0; i < first.size(); ++i) {
    const auto byte = static_cast<unsigned char>(first[i]);
    if (byte == 0) ++zeros[i % 2];
    if (byte < 0x20 ? (byte < '\b' || byte > '\r') && byte != 0x1b : byte == 0x7f) ++strange;
  }
  const std::size_t half = first.size() / 2;
  if (half >= 4 && std::max(zeros[0], zeros[1]) * 10 >= half * 9 && std::min(zeros[0], zeros[1]) * 10 <= half) {
    return "looks like text in UTF-16";
  }
  // A single one may be a slip of the keyboard; of random bytes every ninth is one.
  const bool many = strange * 2 >= first.size() || (strange >= 4 && strange * 20 >= first.size());
  return !first.empty() && many ? "looks like a binary file" : "";
}

void require_text(std::string_view bytes, const std::string& origin, const std::string& remedy) {
  if (const std::string packed = packed_in_words(bytes); !packed.empty()) throw UserError(origin + " " + packed);
  if (const std::string binary = binary_in_words(bytes); !binary.empty()) {
    const bool utf16 = binary.find("UTF-16") != std::string::npos;
    throw UserError(origin + " " + binary + "; " + (utf16 ? "save it in UTF-8" : remedy));
  }
}

}  // namespace zt
