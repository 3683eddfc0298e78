#include "scheduler/status/access.h"

#include <arpa/inet.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/trust/keyed_hash.h"
#include "proto/trust/loopback.h"
#include "proto/trust/secret.h"

namespace troupe {
namespace {

bool IsIpAddress(const std::string& host) {
  in6_addr address = {};
  return inet_pton(AF_INET, host.c_str(), &address) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

}  // namespace

AccessVerdict StatusAccess::Judge(const HttpCredentials& credentials) const {
  if (credentials.path == "/healthz") return AccessVerdict::kGranted;
  if (!IsOurHost(credentials.host)) return AccessVerdict::kOtherHost;
  if (credentials.path == "/" && !credentials.token.empty()) {
    return SameSecret(credentials.token, options_.token)
               ? AccessVerdict::kByLink
               : AccessVerdict::kNoToken;
  }
  return HasToken(credentials) ? AccessVerdict::kGranted
                               : AccessVerdict::kNoToken;
}

std::string StatusAccess::set_cookie() const {
  // Lax, as all here is read only: so that a link in a mail leads to the page.
  return absl::StrCat(CookieName(), "=", CookieValue(),
                      "; Path=/; HttpOnly; SameSite=Lax",
                      options_.https ? "; Secure" : "");
}

std::string StatusAccess::CookieValue() const {
  return absl::BytesToHexString(KeyedHash(options_.token, "cookie"));
}

std::string StatusAccess::CookieName() const {
  return absl::StrCat("troupe-", options_.port);
}

bool StatusAccess::IsOurHost(absl::string_view header) const {
  const std::string host = HostOf(header);
  return IsIpAddress(host) || absl::EqualsIgnoreCase(host, "localhost") ||
         std::any_of(options_.names.begin(), options_.names.end(),
                     [&](const std::string& name) {
                       return absl::EqualsIgnoreCase(host, name);
                     });
}

bool StatusAccess::HasToken(const HttpCredentials& credentials) const {
  absl::string_view bearer = credentials.authorization;
  if (absl::ConsumePrefix(&bearer, "Bearer ") &&
      SameSecret(absl::StripAsciiWhitespace(bearer), options_.token)) {
    return true;
  }
  for (absl::string_view cookie : absl::StrSplit(credentials.cookie, ';')) {
    cookie = absl::StripAsciiWhitespace(cookie);
    if (absl::ConsumePrefix(&cookie, absl::StrCat(CookieName(), "=")) &&
        SameSecret(cookie, CookieValue())) {
      return true;
    }
  }
  return false;
}

}  // namespace troupe
