#include "tests/worker/service/cut_off.h"

#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "proto/base/check.h"

namespace troupe {
namespace {

// Of a connection's own end; 0: no connection over TCP.
int LocalPort(int fd) {
  sockaddr_storage peer = {};
  socklen_t bytes = sizeof(peer);
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &bytes) != 0) {
    return 0;
  }
  sockaddr_storage own = {};
  bytes = sizeof(own);
  getsockname(fd, reinterpret_cast<sockaddr*>(&own), &bytes);
  if (own.ss_family != AF_INET && own.ss_family != AF_INET6) return 0;
  sockaddr_in begin = {};  // the port is where IPv6 has it, too
  std::memcpy(&begin, &own, sizeof(begin));
  return ntohs(begin.sin_port);
}

}  // namespace

int CutOff(int port) {
  sock_filter nothing[] = {BPF_STMT(BPF_RET | BPF_K, 0)};  // bytes to keep
  const sock_fprog program = {.len = 1, .filter = nothing};
  int cut = 0;
  for (const auto& file :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(file.path().filename().string());
    if (LocalPort(fd) != port) continue;
    CHECK_EQ(
        setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)),
        0);
    ++cut;
  }
  return cut;
}

}  // namespace troupe
