#include "scheduler/status/status_server.h"

#include <sys/socket.h>

#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "httplib.h"
#include "proto/base/check.h"
#include "scheduler/status/api.h"
#include "scheduler/status/json.h"
#include "scheduler/status/lobby.h"
#include "scheduler/status/page.h"

namespace troupe {
namespace {

// A request's head, which has come, and its answer, which is sent later.
class HeadStream final : public httplib::Stream {
 public:
  explicit HeadStream(absl::string_view head) : head_(head) {}

  bool is_readable() const override { return !head_.empty(); }
  bool is_writable() const override { return true; }
  ssize_t read(char* bytes, size_t size) override {
    const size_t count = head_.copy(bytes, size);
    head_.remove_prefix(count);
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* bytes, size_t size) override {
    answer_.append(bytes, size);
    return static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return INVALID_SOCKET; }

  std::string TakeAnswer() { return std::move(answer_); }

 private:
  absl::string_view head_;
  std::string answer_;
};

// Connections go to the lobby as they are accepted.
class AtOnce final : public httplib::TaskQueue {
 public:
  void enqueue(std::function<void()> task) override { task(); }
  void shutdown() override {}
};

// httplib with threads for requests in place of threads for connections.
class HttpServer final : public httplib::Server {
 public:
  HttpServer() {
    new_task_queue = [] { return new AtOnce; };
  }
  ~HttpServer() override { CloseConnections(); }

  void CloseConnections() { lobby_ = nullptr; }

  // httplib has the kernel hold five connections until they are accepted; of
  // more at once some wait for a second. REQUIRES: bound.
  void LengthenBacklog() { ::listen(svr_sock_, SOMAXCONN); }

 private:
  HeadAnswer Answer(const std::string& head) {
    // Only what reads is answered, so a body is never read.
    const bool last =
        !absl::StartsWith(head, "GET ") && !absl::StartsWith(head, "HEAD ");
    HeadStream stream(head);
    bool closed = false;
    const bool answered = process_request(stream, last, closed, nullptr);
    return {.bytes = stream.TakeAnswer(), .last = !answered || closed || last};
  }

  bool process_and_close_socket(socket_t socket) override {
    lobby_->Admit(socket);
    return true;
  }

  std::unique_ptr<Lobby> lobby_ = std::make_unique<Lobby>(
      [this](const std::string& head) { return Answer(head); },
      StatusServer::kConnectionsMax);
};

void AnswerError(httplib::Response& response, int code,
                 absl::string_view message) {
  response.status = code;
  response.set_content(absl::StrCat("{\"error\":", JsonString(message), "}\n"),
                       "application/json");
}

}  // namespace

struct StatusServer::Parts {
  const ClusterHost& host;
  const Metrics& metrics;
  const HealthFunction health;
  const absl::Time started = absl::Now();
  HttpServer server;
  std::string host_name;
  int port = 0;
  std::thread thread;

  absl::Duration Uptime() const { return absl::Now() - started; }
  void AddRoutes();
};

StatusServer::StatusServer(const ClusterHost& host, const Metrics& metrics,
                           HealthFunction health)
    : parts_(new Parts{host, metrics, std::move(health)}) {
  httplib::Server& server = parts_->server;
  server.set_tcp_nodelay(true);
  // httplib's default shares the port with whoever asks; this refuses.
  server.set_socket_options([](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
  parts_->AddRoutes();
}

StatusServer::~StatusServer() { Stop(); }

void StatusServer::Parts::AddRoutes() {
  server.set_pre_routing_handler([](const httplib::Request& request,
                                    httplib::Response& response) {
    if (request.method == "GET" || request.method == "HEAD") {
      return httplib::Server::HandlerResponse::Unhandled;
    }
    response.set_header("Allow", "GET, HEAD");
    AnswerError(response, 405,
                "only GET and HEAD; jobs are submitted with `troupe submit`");
    return httplib::Server::HandlerResponse::Handled;
  });
  server.Get("/", [](const httplib::Request&, httplib::Response& response) {
    response.set_content(kPageHtml, "text/html; charset=utf-8");
  });
  server.Get("/healthz", [this](const httplib::Request&,
                                httplib::Response& response) {
    const absl::Status healthy = health();
    if (healthy.ok()) {
      response.set_content("ok\n", "text/plain");
    } else {
      response.status = 503;
      response.set_content(absl::StrCat(healthy.message(), "\n"), "text/plain");
    }
  });
  server.Get("/metrics",
             [this](const httplib::Request&, httplib::Response& response) {
               const std::string text =
                   host.Read([this](const Cluster& cluster, absl::Time) {
                     return metrics.Text(cluster, Uptime());
                   });
               response.set_content(text, "text/plain; version=0.0.4");
             });
  server.Get("/api/v1(/.*)", [this](const httplib::Request& request,
                                    httplib::Response& response) {
    ApiQuery query;
    const std::pair<const char*, int64_t*> numbers[] = {
        {"from", &query.from},
        {"stride", &query.stride},
        {"offset", &query.offset},
        {"limit", &query.limit}};
    for (const auto& [name, number] : numbers) {
      if (request.has_param(name) &&
          !absl::SimpleAtoi(request.get_param_value(name), number)) {
        return AnswerError(response, 400,
                           absl::StrCat(name, " must be a number"));
      }
    }
    const absl::StatusOr<std::string> answer =
        ApiAnswer(host, std::string(request.matches[1]), query, started);
    if (!answer.ok()) {
      return AnswerError(response, 404, answer.status().message());
    }
    response.set_header("Cache-Control", "no-store");
    response.set_content(*answer, "application/json");
  });
  server.set_error_handler([](const httplib::Request& request,
                              httplib::Response& response) {
    if (!response.body.empty()) return;
    AnswerError(response, response.status,
                response.status == 404
                    ? absl::StrCat("there is no ", request.path,
                                   "; there are /, /api/v1/cluster, /metrics ",
                                   "and /healthz")
                    : absl::StrCat("HTTP status ", response.status));
  });
  server.set_exception_handler([](const httplib::Request&,
                                  httplib::Response& response,
                                  std::exception_ptr) {
    AnswerError(response, 500, "the request could not be answered");
  });
}

absl::Status StatusServer::Start(const std::string& listen) {
  const size_t colon = listen.rfind(':');
  int port = 0;
  if (colon == std::string::npos ||
      !absl::SimpleAtoi(listen.substr(colon + 1), &port) || port < 0 ||
      port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("--http ", listen, ": expected HOST:PORT"));
  }
  parts_->host_name = listen.substr(0, colon);
  httplib::Server& server = parts_->server;
  if (port == 0) {
    parts_->port = server.bind_to_any_port(parts_->host_name);
  } else if (server.bind_to_port(parts_->host_name, port)) {
    parts_->port = port;
  }
  if (parts_->port <= 0) {
    parts_->port = 0;
    return absl::UnavailableError(absl::StrCat(
        "cannot listen on ", listen, " (--http): another process has the ",
        "port, or the address is not this machine's; port 0 takes a free one"));
  }
  parts_->server.LengthenBacklog();
  parts_->thread = std::thread([&server] { server.listen_after_bind(); });
  // Stop before the loop runs would not be seen by it.
  while (!server.is_running()) std::this_thread::yield();
  return absl::OkStatus();
}

std::string StatusServer::url() const {
  CHECK(parts_->port > 0);
  return absl::StrCat("http://", parts_->host_name, ":", parts_->port);
}

void StatusServer::Stop() {
  if (!parts_->thread.joinable()) return;
  parts_->server.stop();
  parts_->thread.join();
  parts_->server.CloseConnections();
}

}  // namespace troupe
