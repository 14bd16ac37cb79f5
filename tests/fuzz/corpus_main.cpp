// Stands in for libFuzzer where no clang is: runs a target on every file of its corpus, and on so many seeded changes
// of them.    NAME_corpus CORPUS-DIRECTORY CHANGES
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

std::vector<Bytes> corpus_of(const std::string& directory) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<Bytes> corpus;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return corpus;
}

class Changes {
 public:
  explicit Changes(const std::vector<Bytes>& corpus) : corpus_(corpus) {}

  Bytes next() {
    Bytes bytes = corpus_[below(corpus_.size())];
    for (std::size_t count = 1 + below(4); count > 0; --count) change(bytes);
    return bytes;
  }

 private:
  std::size_t below(std::size_t limit) { return limit == 0 ? 0 : random_() % limit; }
  std::ptrdiff_t place(const Bytes& bytes) { return static_cast<std::ptrdiff_t>(below(bytes.size() + 1)); }
  std::ptrdiff_t end(const Bytes& bytes, std::ptrdiff_t from) {
    return from + static_cast<std::ptrdiff_t>(
                      below(std::min<std::size_t>(64, bytes.size() - static_cast<std::size_t>(from)) + 1));
  }

  void change(Bytes& bytes) {
    static const std::vector<std::string> words = {"-1",
                                                   "0",
                                                   "1e99",
                                                   "9223372036854775807",
                                                   "18446744073709551616",
                                                   "null",
                                                   "[",
                                                   "]",
                                                   "{",
                                                   "}",
                                                   "\"",
                                                   "\\u0000",
                                                   "true",
                                                   "../x",
                                                   "\xff"};
    const std::ptrdiff_t at = place(bytes);
    switch (below(6)) {
      case 0:
        if (!bytes.empty()) bytes[below(bytes.size())] ^= static_cast<std::uint8_t>(1U << below(8));
        break;
      case 1: bytes.resize(static_cast<std::size_t>(at)); break;
      case 2: bytes.erase(bytes.begin() + at, bytes.begin() + end(bytes, at)); break;
      case 3: {
        const Bytes part(bytes.begin() + at, bytes.begin() + end(bytes, at));
        const std::ptrdiff_t to = place(bytes);
        bytes.insert(bytes.begin() + to, part.begin(), part.end());
        break;
      }
      case 4: {
        const std::string& word = words[below(words.size())];
        bytes.insert(bytes.begin() + at, word.begin(), word.end());
        break;
      }
      default: {
        const std::size_t count = std::min<std::size_t>(8, bytes.size() - static_cast<std::size_t>(at));
        std::fill_n(bytes.begin() + at, count, static_cast<std::uint8_t>(below(2) * 0xff));
      }
    }
  }

  const std::vector<Bytes>& corpus_;
  std::minstd_rand random_{20240601};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::vector<Bytes> corpus = corpus_of(argv[1]);
  if (corpus.empty()) {
    std::fprintf(stderr, "no corpus in %s\n", argv[1]);
    return 1;
  }
  for (const Bytes& bytes : corpus) LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  Changes changes(corpus);
  const int count = std::atoi(argv[2]);
  for (int i = 0; i < count; ++i) {
    const Bytes bytes = changes.next();
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  std::printf("%zu inputs of the corpus, %d changes of them\n", corpus.size(), count);
  return 0;
}
