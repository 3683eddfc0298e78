#include "scheduler/published_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/base/process_state.h"

namespace troupe {

std::string PublishedAddress(absl::string_view address,
                             absl::FunctionRef<std::string()> this_host) {
  absl::string_view rest = address;
  absl::string_view scheme;
  for (const absl::string_view known : {"http://", "https://"}) {
    if (absl::ConsumePrefix(&rest, known)) scheme = known;
  }
  const size_t colon = rest.rfind(':');
  const absl::string_view host = rest.substr(0, colon);
  for (const absl::string_view all : {"0.0.0.0", "[::]", "::", "*"}) {
    if (host != all || colon == rest.npos) continue;
    return absl::StrCat(scheme, this_host(), rest.substr(colon));
  }
  return std::string(address);
}

std::string AddressOfThisHost() {
  // A datagram socket that is connected sends nothing, but has chosen its way.
  // The address is one that is set aside for documents (RFC 5737).
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in other = {.sin_family = AF_INET, .sin_port = htons(9)};
  inet_pton(AF_INET, "192.0.2.1", &other.sin_addr);
  sockaddr_in own = {};
  socklen_t size = sizeof(own);
  char text[INET_ADDRSTRLEN] = "";
  if (fd >= 0 &&
      connect(fd, reinterpret_cast<sockaddr*>(&other), sizeof(other)) == 0 &&
      getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) == 0) {
    inet_ntop(AF_INET, &own.sin_addr, text, sizeof(text));
  }
  if (fd >= 0) close(fd);
  return text[0] == '\0' ? HostName() : text;
}

}  // namespace troupe
