#include "scheduler/status/content_policy.h"

#include "absl/strings/str_cat.h"
#include "proto/trust/secret.h"

namespace troupe {
namespace {

// " 'sha256-...'" for each element of this name.
std::string HashesOf(absl::string_view html, absl::string_view element) {
  const std::string begin = absl::StrCat("<", element, ">");
  const std::string end = absl::StrCat("</", element, ">");
  std::string hashes;
  size_t from = html.find(begin);
  while (from != html.npos) {
    from += begin.size();
    const size_t to = html.find(end, from);
    absl::StrAppend(&hashes, " '",
                    Sha256ForPolicy(html.substr(from, to - from)), "'");
    from = html.find(begin, to);
  }
  return hashes.empty() ? " 'none'" : hashes;
}

}  // namespace

std::string ContentPolicy(absl::string_view html) {
  return absl::StrCat("default-src 'none'; script-src",
                      HashesOf(html, "script"), "; style-src",
                      HashesOf(html, "style"),
                      "; style-src-attr 'unsafe-inline'; connect-src 'self'; "
                      "img-src data:; base-uri 'none'; form-action 'none'; "
                      "frame-ancestors 'none'");
}

}  // namespace troupe
