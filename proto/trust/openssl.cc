#include "proto/trust/openssl.h"

#include <openssl/err.h>

#include "absl/strings/str_cat.h"

namespace troupe {

absl::Status OpenSslError(absl::string_view what) {
  char text[256] = "no reason given";
  const unsigned long error = ERR_peek_last_error();
  if (error != 0) ERR_error_string_n(error, text, sizeof(text));
  ERR_clear_error();
  return absl::InternalError(absl::StrCat(what, ": ", text));
}

OwnedBio ReadingFrom(absl::string_view bytes) {
  return OwnedBio(
      BIO_new_mem_buf(bytes.data(), static_cast<int>(bytes.size())));
}

std::string BytesOf(const OwnedBio& bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, size);
}

}  // namespace troupe
