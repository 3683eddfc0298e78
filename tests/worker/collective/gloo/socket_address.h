// Addresses of sockets, made up.
#ifndef TROUPE_TESTS_WORKER_COLLECTIVE_GLOO_SOCKET_ADDRESS_H_
#define TROUPE_TESTS_WORKER_COLLECTIVE_GLOO_SOCKET_ADDRESS_H_

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstring>
#include <string>

#include "proto/base/check.h"

namespace troupe {

// `host` is a number of IPv4 or IPv6.
inline sockaddr_storage SocketAddress(const std::string& host, int port) {
  sockaddr_storage socket = {};
  if (host.find(':') == std::string::npos) {
    sockaddr_in v4 = {};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    CHECK(inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) << host;
    std::memcpy(&socket, &v4, sizeof(v4));
  } else {
    sockaddr_in6 v6 = {};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    CHECK(inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) == 1) << host;
    std::memcpy(&socket, &v6, sizeof(v6));
  }
  return socket;
}

}  // namespace troupe

#endif  // TROUPE_TESTS_WORKER_COLLECTIVE_GLOO_SOCKET_ADDRESS_H_
