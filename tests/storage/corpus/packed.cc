#include "tests/storage/corpus/packed.h"

#include <zlib.h>
#include <zstd.h>

#include "proto/base/check.h"

namespace troupe {

std::string Gzipped(absl::string_view bytes) {
  z_stream stream = {};
  CHECK(deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8,
                     Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&stream, bytes.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string Zstded(absl::string_view bytes) {
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  const size_t size =
      ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 3);
  CHECK(!ZSTD_isError(size)) << ZSTD_getErrorName(size);
  out.resize(size);
  return out;
}

}  // namespace troupe
