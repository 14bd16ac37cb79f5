// Token files of llm.c, nanoGPT and Megatron: written, read, cut into windows, and refused where they are wrong.
#include "data/token_files.h"

#include <cstring>
#include <functional>
#include <optional>

#include "data/token_writer.h"
#include "data_support.h"

using namespace zt::testing;

namespace {

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}
std::string u16(const std::vector<std::uint16_t>& ids) { return bytes_of(ids); }

std::string llm_c(std::int32_t magic, std::int32_t version, std::int32_t count, const std::string& tokens) {
  std::vector<std::int32_t> header(256);
  header[0] = magic, header[1] = version, header[2] = count;
  return bytes_of(header) + tokens;
}

struct Index {
  std::uint64_t version = 1;
  std::uint8_t type = 8;
  std::vector<std::int32_t> lengths;
  std::vector<std::int64_t> pointers, documents;
  std::optional<std::uint64_t> sequences{}, bounds{};  // said to be there
  std::string text() const {
    return std::string("MMIDIDX\0\0", 9) + bytes_of<std::uint64_t>({version}) + bytes_of<std::uint8_t>({type}) +
           bytes_of<std::uint64_t>({sequences.value_or(lengths.size()), bounds.value_or(documents.size())}) +
           bytes_of(lengths) + bytes_of(pointers) + bytes_of(documents);
  }
};

std::vector<std::int32_t> all_of(const zt::TokenFile& file) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(file.size()));
  file.copy(0, ids);
  return ids;
}

zt::Settings settings_for(const std::string& train, std::int64_t length, std::int64_t vocab_size) {
  zt::Settings settings;
  settings.model.type = "gpt";
  settings.model.gpt.n_positions = length;
  settings.model.gpt.vocab_size = vocab_size;
  settings.data.type = "tokens";
  settings.data.train = train;
  settings.data.tokenizer.clear();
  settings.data.format.clear();
  settings.batch.train = 1;
  return settings;
}

using Ids = std::vector<std::int32_t>;

}  // namespace

TEST_CASE("what is written in each format is read again, and known without being told") {
  const TemporaryFolder folder;
  for (const zt::TokenFormat format : {zt::TokenFormat::llm_c, zt::TokenFormat::nanogpt, zt::TokenFormat::megatron}) {
    for (const std::int64_t vocabulary : {50257, 65536, 200000}) {
      if (format == zt::TokenFormat::nanogpt && vocabulary > 65536) continue;
      const std::string path = folder.path(std::string(zt::name_of(format)) + std::to_string(vocabulary) + ".bin");
      const std::vector<std::uint32_t> ids = {5, 0, 50256, static_cast<std::uint32_t>(vocabulary - 1), 7};
      zt::TokenWriter writer(path, format, vocabulary);
      writer.append(std::span(ids).first(2));
      writer.append(std::span(ids).subspan(2, 1));
      writer.end_document();
      writer.append(std::span(ids).subspan(3));
      writer.end_document();
      CHECK_FALSE(std::filesystem::exists(path));
      writer.finish();
      CHECK_FALSE(std::filesystem::exists(path + ".tmp"));
      const zt::TokenFile file(path, "data.train", "");
      CHECK(file.format() == format);
      CHECK(all_of(file) == Ids(ids.begin(), ids.end()));
      CHECK(file.largest(0, 5) == static_cast<std::uint32_t>(std::max<std::int64_t>(50256, vocabulary - 1)));
      CHECK(file.documents() ==
            (format == zt::TokenFormat::megatron ? std::vector<std::int64_t>{0, 3} : std::vector<std::int64_t>{}));
    }
  }
  CHECK(contains(message_of([&] { zt::TokenWriter(folder.path("x"), zt::TokenFormat::nanogpt, 65537); }),
                 {"16 bits", "llm.c or megatron"}));
  { zt::TokenWriter unfinished(folder.path("gone.bin"), zt::TokenFormat::llm_c, 100); }
  CHECK_FALSE(std::filesystem::exists(folder.path("gone.bin.tmp")));
}

TEST_CASE("the layouts are those of the programs that made them") {
  const TemporaryFolder folder;
  const auto ids = [&](const std::string& name, const std::string& text) {
    return all_of(zt::TokenFile(folder.write(name, text), "data.train", ""));
  };
  CHECK(ids("a.bin", llm_c(20240520, 1, 3, u16({1, 50256, 65535}))) == Ids{1, 50256, 65535});
  CHECK(ids("a.bin", llm_c(20240520, 2, 3, u16({1, 2, 3}))) == Ids{1, 2, 3});
  CHECK(ids("a.bin", llm_c(20240520, 2, 2, bytes_of<std::int32_t>({1, 128000}))) == Ids{1, 128000});
  CHECK(ids("a.bin", llm_c(20240801, 7, 2, bytes_of<std::int32_t>({1, 128000}))) == Ids{1, 128000});
  CHECK(ids("a.bin", u16({50256})) == Ids{50256});
  for (const auto& [type, tokens, width] :
       {std::tuple{1, bytes_of<std::uint8_t>({1, 2, 255}), 1}, std::tuple{3, bytes_of<std::int16_t>({1, 2, 255}), 2},
        std::tuple{8, u16({1, 2, 255}), 2}, std::tuple{4, bytes_of<std::int32_t>({1, 2, 255}), 4},
        std::tuple{5, bytes_of<std::int64_t>({1, 2, 255}), 8}}) {
    const Index index{
        .type = static_cast<std::uint8_t>(type), .lengths = {1, 2}, .pointers = {0, width}, .documents = {0, 1, 2}};
    folder.write("m.idx", index.text());
    CHECK(ids("m.bin", tokens) == Ids{1, 2, 255});
  }
}

TEST_CASE("patterns name files in the order of their names") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path("a[1]/sub"));
  for (const char* name : {"a[1]/t_2.bin", "a[1]/t_1.bin", "a[1]/t_1.idx", "a[1]/other.txt", "a[1]/sub/t_3.bin"})
    folder.write(name, "xx");
  const auto names = [&](const std::string& pattern) {
    std::string found;
    for (const std::string& path : zt::token_files_named(folder.path(pattern), "data.train"))
      found += path.substr(folder.path("a[1]/").size()) + " ";
    return found;
  };
  CHECK(names("a[1]/t_*.bin") == "t_1.bin t_2.bin ");
  CHECK(names("a[1]/t_*") == "t_1.bin t_2.bin ");
  CHECK(names("a[1]/t_1") == "t_1.bin ");
  CHECK(names("a[1]/*/t_?.bin") == "sub/t_3.bin ");
  CHECK(names("a[1]/t_[12].bin") == "t_1.bin t_2.bin ");
  CHECK(contains(message_of([&] { names("a[1]/z*"); }), {"matches no file"}));
  CHECK(contains(message_of([&] { names("a[1]/zz"); }), {"no such file"}));
  CHECK(contains(message_of([&] { names("a[1]"); }), {"is a folder", "*.bin"}));
}

TEST_CASE("k T + 1 tokens make k samples, over the ends of files too") {
  const TemporaryFolder folder;
  folder.write("t_1.bin", u16({0, 1, 2, 3}));
  folder.write("t_2.bin", llm_c(20240520, 1, 2, u16({4, 5})));
  folder.write("t_3.bin", u16({6}));
  const auto dataset = zt::open_dataset(settings_for(folder.path("t_*.bin"), 3, 7));
  REQUIRE(dataset.training->samples() == 2);
  CHECK(sample_of(*dataset.training, 0).tokens == Ids{0, 1, 2});
  CHECK(sample_of(*dataset.training, 0).token_targets == Ids{1, 2, 3});
  CHECK(sample_of(*dataset.training, 1).tokens == Ids{3, 4, 5});
  CHECK(sample_of(*dataset.training, 1).token_targets == Ids{4, 5, 6});
  CHECK(dataset.vocab_size == 7);
  CHECK(dataset.validation == nullptr);
  CHECK(zt::open_dataset(settings_for(folder.path("t_1.bin"), 3, 7)).training->samples() == 1);
  CHECK(contains(message_of([&] { zt::open_dataset(settings_for(folder.path("t_1.bin"), 4, 7)); }),
                 {"4 tokens", "at least 5"}));
  CHECK(contains(message_of([&] { zt::open_dataset(settings_for(folder.path("t_3.bin"), 1, 7)); }), {"1 token;"}));
}

TEST_CASE("documents apart: a window ends with its document, and no target is lost") {
  const TemporaryFolder folder;
  // 9 starts a document, as in llm.c's files.
  zt::Settings settings = settings_for(folder.write("t.bin", u16({9, 1, 2, 3, 4, 9, 5, 9, 6, 7})), 3, 10);
  settings.data.documents_apart = true;
  settings.data.end_of_text = 9;
  const auto dataset = zt::open_dataset(settings);
  const zt::Source& source = *dataset.training;
  REQUIRE(source.samples() == 4);
  CHECK(source.masks_losses());
  CHECK(sample_of(source, 0).tokens == Ids{9, 1, 2});
  CHECK(sample_of(source, 0).token_targets == Ids{1, 2, 3});
  CHECK(sample_of(source, 1).tokens == Ids{3, 4, 0});
  CHECK(sample_of(source, 1).token_targets == Ids{4, 9, -1});
  CHECK(sample_of(source, 2).tokens == Ids{9, 5, 0});
  CHECK(sample_of(source, 2).token_targets == Ids{5, 9, -1});
  CHECK(sample_of(source, 3).tokens == Ids{9, 6, 0});
  CHECK(sample_of(source, 3).token_targets == Ids{6, 7, -1});
  CHECK(source.losses(0) == 3);
  CHECK(source.losses(3) == 2);
  // A window before a document's first one may be whole all the same.
  CHECK_FALSE(source.goes_on(0));
  CHECK(source.goes_on(1));
  CHECK_FALSE(source.goes_on(2));
  CHECK_FALSE(source.goes_on(3));
  const auto whole = settings_for(folder.write("w.bin", u16({9, 1, 2, 9, 3, 4, 9})), 3, 10);
  CHECK(zt::open_dataset(whole).training->goes_on(1));
  settings.data.train = folder.path("w.bin");
  const auto each = zt::open_dataset(settings);
  REQUIRE(each.training->samples() == 2);
  CHECK(each.training->losses(0) == 3);
  CHECK_FALSE(each.training->goes_on(1));

  // Megatron's index tells where documents start; one of a single token has nothing to predict.
  const Index index{.lengths = {2, 1, 3}, .pointers = {0, 4, 6}, .documents = {0, 1, 2, 3}};
  folder.write("m.idx", index.text());
  settings.data.train = folder.write("m.bin", u16({1, 2, 3, 4, 5, 6}));
  const auto apart = zt::open_dataset(settings);
  REQUIRE(apart.training->samples() == 2);
  CHECK(sample_of(*apart.training, 0).token_targets == Ids{2, -1, -1});
  CHECK(sample_of(*apart.training, 1).tokens == Ids{4, 5, 0});
  CHECK(sample_of(*apart.training, 1).token_targets == Ids{5, 6, -1});
}

TEST_CASE("ids outside the vocabulary are named with file, token and byte") {
  const TemporaryFolder folder;
  const std::string path = folder.write("t.bin", llm_c(20240520, 1, 4, u16({1, 2, 50257, 3})));
  CHECK(contains(message_of([&] { zt::open_dataset(settings_for(path, 3, 50257)); }),
                 {"data.train", "t.bin", "token 2 (from 0; byte 1028) is 50257", "50257 ids", "llm.c"}));
  const auto dataset = zt::open_dataset(settings_for(path, 3, 0));
  CHECK(dataset.vocab_size == 50258);
  REQUIRE(dataset.notices.size() == 1);
  CHECK(contains(dataset.notices[0], {"model.vocab_size", "50258"}));

  const Index index{.type = 5, .lengths = {3}, .pointers = {0}, .documents = {0, 1}};
  folder.write("m.idx", index.text());
  const std::string wide = folder.write("m.bin", bytes_of<std::int64_t>({1, std::int64_t{1} << 40, -1}));
  for (const std::int64_t vocabulary : {0, 100}) {
    CHECK(contains(message_of([&] { zt::open_dataset(settings_for(wide, 2, vocabulary)); }),
                   {"token 1 (from 0; byte 8) is negative, or beyond 2147483647"}));
  }
  // A run too large to be read whole at the start is checked in parts, the last block always.
  std::vector<std::uint16_t> many(1'000'000, 1);
  many.back() = 99;
  folder.write("big.bin", u16(many));
  const zt::TokenRun run(folder.path("big.bin"), "data.train", "");
  CHECK(run.check_ids(100, 100'000) == false);
  CHECK(run.check_ids(100, 10'000'000) == true);
  CHECK(contains(message_of([&] { run.check_ids(99, 100'000); }), {"token 999999"}));
}

TEST_CASE("bad token files are refused with what is wrong") {
  const TemporaryFolder folder;
  const auto said = [&](const std::string& text, const std::string& format = "") {
    const std::string path = folder.write("t.bin", text);
    return message_of([&] { zt::TokenFile(path, "data.train", format); });
  };
  CHECK(contains(said(""), {"is empty"}));
  CHECK(contains(said(llm_c(20240520, 1, 3, u16({1, 2}))), {"3 tokens of 2 bytes", "has 4 bytes", "cut short"}));
  CHECK(contains(said(llm_c(20240520, 1, 1, u16({1, 2}))), {"1 tokens of 2 bytes", "has 4 bytes"}));
  CHECK(contains(said(llm_c(20240520, 1, -1, u16({1}))), {"-1 tokens"}));
  CHECK(contains(said(llm_c(20240520, 1, 2147483647, u16({1}))), {"2147483647 tokens"}));
  CHECK(contains(said(llm_c(20240520, 1, 0, "")), {"holds no tokens"}));
  CHECK(contains(said(llm_c(20240520, 3, 1, u16({1}))), {"version 3", "1 or 2"}));
  CHECK(contains(said(llm_c(20240801, 1, 1, u16({1}))), {"version 1", "7 is"}));
  CHECK(contains(said(llm_c(20240520, 1, 1, "").substr(0, 500)), {"500 bytes", "1024"}));
  CHECK(contains(said(llm_c(20240326, 3, 1, u16({1}))), {"an llm.c model"}));
  CHECK(contains(said(llm_c(20240522, 1, 1, u16({1}))), {"questions for evaluation"}));
  CHECK(contains(said("BIN.TOK\n" + std::string(2000, '\1')), {"LLM.Q"}));
  CHECK(contains(said(std::string("\1\0\2", 3)), {"odd number", "nanoGPT"}));
  CHECK(contains(said("In the beginning God created the heaven and the earth."), {"looks like text"}));
  CHECK(contains(said(packed("xxxx")), {"gzip"}));
  CHECK(contains(said(u16({1, 2}), "llm.c"), {"less than the 1024"}));
  CHECK(contains(said(std::string(2000, '\1'), "llm.c"), {"starts with 16843009", "20240520"}));
  CHECK(contains(said(u16({1, 2}), "megatron"), {"t.idx", "no such file"}));

  const Index good{.lengths = {1, 2}, .pointers = {0, 2}, .documents = {0, 1, 2}};
  const auto indexed = [&](const std::string& index, const std::string& tokens = u16({1, 2, 3})) {
    folder.write("m.idx", index);
    const std::string path = folder.write("m.bin", tokens);
    return message_of([&] { zt::TokenFile(path, "data.train", ""); });
  };
  CHECK(indexed(good.text()).empty());
  CHECK(contains(indexed("MMID"), {"MMIDIDX"}));
  CHECK(contains(indexed(good.text().substr(0, 30)), {"shorter than its header"}));
  CHECK(contains(indexed(good.text().substr(0, good.text().size() - 1)), {"does not fit"}));
  CHECK(contains(indexed(good.text(), u16({1, 2})), {"sequence 1"}));
  CHECK(contains(indexed(good.text(), u16({1, 2, 3, 4})), {"counts 3 tokens", "has 8 bytes"}));
  const auto changed = [&](const std::function<void(Index&)>& change) {
    Index index = good;
    change(index);
    return indexed(index.text());
  };
  CHECK(contains(changed([](Index& i) { i.version = 2; }), {"version 2"}));
  CHECK(contains(changed([](Index& i) { i.type = 6; }), {"element type 6"}));
  CHECK(contains(changed([](Index& i) { i.sequences = ~std::uint64_t{0}; }), {"18446744073709551615 sequences"}));
  CHECK(contains(changed([](Index& i) { i.bounds = std::uint64_t{1} << 61; }), {"does not fit"}));
  CHECK(contains(changed([](Index& i) { i.lengths = {1, -2}; }), {"sequence 1", "-2 tokens"}));
  CHECK(contains(changed([](Index& i) { i.lengths = {1, 2147483647}; }), {"sequence 1"}));
  CHECK(contains(changed([](Index& i) { i.pointers = {0, 0}; }), {"sequence 1", "byte 2"}));
  CHECK(contains(changed([](Index& i) { i.documents = {0, 2, 1}; }), {"document 2"}));
  CHECK(contains(changed([](Index& i) { i.documents = {0, 1, 9}; }), {"document 2", "sequence 9"}));
  CHECK(contains(changed([](Index& i) { i.documents = {1, 1, 2}; }), {"document 0"}));
}
