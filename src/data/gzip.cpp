#include "data/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <new>
#include <vector>

#include "core/errors.h"
#include "data/message_text.h"

namespace zt {

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

namespace {

// Room for so many bytes more, as much again as there is; false: memory has not so much. While what is there moves, it
// is in memory twice.
bool make_room(std::string& unpacked, std::size_t more, const std::function<std::int64_t()>& available) {
  constexpr std::size_t first = std::size_t{1} << 26;  // bytes; so few are not asked for
  const std::size_t needed = unpacked.size() + more;
  if (needed <= unpacked.capacity()) return true;
  std::size_t room = std::max(needed, 2 * unpacked.capacity());
  if (room > first) {
    room = std::min(room, static_cast<std::size_t>(std::max<std::int64_t>(0, available())));
    if (room < needed) return false;
  }
  unpacked.reserve(room);
  return true;
}

}  // namespace

std::string gunzip(std::string_view packed, const std::string& origin, const std::function<std::int64_t()>& available) {
  constexpr int gzip_only = 15 + 16;  // the largest window, and gzip's header instead of zlib's
  constexpr std::size_t block_bytes = std::size_t{1} << 18;
  z_stream stream{};
  if (inflateInit2(&stream, gzip_only) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, inflateEnd);

  std::string unpacked;
  std::vector<Bytef> block(block_bytes);
  std::size_t given = 0;  // bytes of `packed` that zlib has been given
  const auto read = [&] { return given - stream.avail_in; };
  const auto fail = [&](const std::string& what) { throw UserError(origin + ": " + what); };
  while (true) {
    if (stream.avail_in == 0 && given < packed.size()) {
      const std::size_t next = std::min<std::size_t>(packed.size() - given, std::numeric_limits<uInt>::max());
      // zlib reads only, whatever its type says.
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + given));
      stream.avail_in = static_cast<uInt>(next);
      given += next;
    }
    stream.next_out = block.data();
    stream.avail_out = static_cast<uInt>(block.size());
    const int status = inflate(&stream, Z_NO_FLUSH);
    if (!make_room(unpacked, block.size() - stream.avail_out, available)) {
      fail("its " + counted(static_cast<std::int64_t>(packed.size()), "byte") + " of gzip content are more than " +
           std::to_string(unpacked.size()) +
           " bytes unpacked, for which this machine has not the memory; unpack a part of it (gunzip), or give memory");
    }
    unpacked.append(reinterpret_cast<const char*>(block.data()), block.size() - stream.avail_out);
    if (status == Z_STREAM_END) {
      if (read() == packed.size()) return unpacked;
      if (!is_gzip(packed.substr(read()))) {
        fail("bytes that are not gzip follow its packed content, from byte " + std::to_string(read()) +
             " on; the file was damaged or joined with something else: get it again");
      }
      inflateReset(&stream);
      continue;
    }
    if (status == Z_MEM_ERROR) throw std::bad_alloc();
    if (status == Z_BUF_ERROR) {  // neither input nor a way to go on without it
      fail("its gzip content is cut short after " + counted(static_cast<std::int64_t>(packed.size()), "byte") +
           "; get the file again (gzip --test FILE tells whether it is whole)");
    }
    if (status != Z_OK) {
      fail("its gzip content is damaged near byte " + std::to_string(read()) + " (" +
           (stream.msg != nullptr ? stream.msg : "zlib error " + std::to_string(status)) +
           "); get the file again (gzip --test FILE tells whether it is whole)");
    }
  }
}

}  // namespace zt
