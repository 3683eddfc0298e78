// Access over HTTP: anyone with the token of this scheduler may read. A person
// opens a link that carries it, /?token=..., and has a cookie from then on;
// programs send it as "Authorization: Bearer ...". Whether the scheduler is
// well, /healthz, everybody may ask.
//
// A page of somebody else's, open in the same browser, must not get at what we
// answer. So a request has to name us as its host: an IP address, or a name
// that is ours. (A stranger's name may be made to lead to our address: DNS
// rebinding.) And the cookie is sent to us only by pages of ours.
#ifndef TROUPE_SCHEDULER_STATUS_ACCESS_H_
#define TROUPE_SCHEDULER_STATUS_ACCESS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace troupe {

// Of a request; empty where it has none.
struct HttpCredentials {
  std::string path;
  std::string host;           // the header "Host"
  std::string authorization;  // the header
  std::string cookie;         // the header
  std::string token;          // of the query
};

enum class AccessVerdict {
  kGranted,
  kByLink,     // goes on without the token in its address, with set_cookie()
  kNoToken,    // has none, or another
  kOtherHost,  // asks somebody else
};

class StatusAccess {
 public:
  struct Options {
    std::string token;
    std::vector<std::string> names;  // besides localhost and addresses
    int port = 0;
    bool https = false;
  };
  explicit StatusAccess(const Options& options) : options_(options) {}

  AccessVerdict Judge(const HttpCredentials& credentials) const;

  // The value of the header "Set-Cookie".
  std::string set_cookie() const;

 private:
  // Schedulers on other ports of this host have their own: cookies know no
  // ports.
  std::string CookieName() const;
  // Not the token: cookies go to all ports of a host.
  std::string CookieValue() const;
  bool IsOurHost(absl::string_view host) const;
  bool HasToken(const HttpCredentials& credentials) const;

  const Options options_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_STATUS_ACCESS_H_
