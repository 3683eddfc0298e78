#include "scheduler/status/status_server.h"

#include <sys/socket.h>

#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "httplib.h"
#include "proto/base/check.h"
#include "proto/base/clock.h"
#include "proto/base/one_line.h"
#include "proto/base/status.h"
#include "proto/trust/accepted_wire.h"
#include "proto/trust/certificate_end.h"
#include "proto/trust/loopback.h"
#include "proto/trust/refused_peers.h"
#include "scheduler/service/request_rate.h"
#include "scheduler/status/access.h"
#include "scheduler/status/api.h"
#include "scheduler/status/content_policy.h"
#include "scheduler/status/json.h"
#include "scheduler/status/lobby.h"
#include "scheduler/status/page.h"

namespace troupe {
namespace {

// A request's head, which has come, and its answer, which is sent later.
class HeadStream final : public httplib::Stream {
 public:
  HeadStream(absl::string_view head, const std::string& peer)
      : head_(head), peer_(peer) {}

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
  // Both in one.
  void get_remote_ip_and_port(std::string& ip, int&) const override {
    ip = peer_;
  }
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return INVALID_SOCKET; }

  std::string TakeAnswer() { return std::move(answer_); }

 private:
  absl::string_view head_;
  const std::string peer_;
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

  // From here on what is accepted is a connection with TLS.
  void Encrypt(std::unique_ptr<TlsServer> tls) { tls_ = std::move(tls); }

  // httplib has the kernel hold five connections until they are accepted; of
  // more at once some wait for a second. REQUIRES: bound.
  void LengthenBacklog() { ::listen(svr_sock_, SOMAXCONN); }

  HeadAnswer Answer(const std::string& head, const std::string& peer) {
    // Only what reads is answered, so a body is never read.
    const bool last =
        !absl::StartsWith(head, "GET ") && !absl::StartsWith(head, "HEAD ");
    HeadStream stream(head, peer);
    bool closed = false;
    const bool answered = process_request(stream, last, closed, nullptr);
    return {.bytes = stream.TakeAnswer(), .last = !answered || closed || last};
  }

 private:
  bool process_and_close_socket(socket_t socket) override {
    lobby_->Admit(tls_ == nullptr ? PlainWire(socket) : tls_->Accept(socket));
    return true;
  }

  std::unique_ptr<TlsServer> tls_;
  std::unique_ptr<Lobby> lobby_ = std::make_unique<Lobby>(
      [this](const std::string& head, const std::string& peer) {
        return Answer(head, peer);
      },
      StatusServer::kConnectionsMax);
};

void AnswerError(httplib::Response& response, int code,
                 absl::string_view message) {
  response.status = code;
  response.set_content(absl::StrCat("{\"error\":", JsonString(message), "}\n"),
                       "application/json");
}

// As text of a page: a folder may be called anything.
std::string HtmlText(const std::string& text) {
  return absl::StrReplaceAll(text,
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
}

// With what is wrong with the scheduler's certificate, if anything is.
std::string PageFor(const PeerTrust& trust) {
  const std::string warning =
      trust.insecure > 0
          ? "INSECURE: this scheduler has no certificates; anyone who reaches "
            "it may do everything"
          : CertificateEndsSoon(trust, PeerRole::kScheduler, absl::Now());
  if (warning.empty()) return kPageHtml;
  return absl::StrReplaceAll(
      kPageHtml, {{"<main>", absl::StrCat("<main><div class=\"insecure\">",
                                          HtmlText(warning), "</div>")}});
}

// Of a request, what says which peer asks.
HttpCredentials CredentialsOf(const httplib::Request& request) {
  const auto header = [&](const char* name) {
    // One that is there twice may be read in two ways.
    return request.get_header_value_count(name) == 1
               ? request.get_header_value(name)
               : "";
  };
  return {.path = request.path,
          .host = header("Host"),
          .authorization = header("Authorization"),
          .cookie = header("Cookie"),
          .token = request.get_param_value("token")};
}

}  // namespace

struct StatusServer::Parts {
  Parts(const ClusterHost& cluster, const Metrics& counted,
        StatusServerOptions given)
      : host(cluster),
        metrics(counted),
        options(std::move(given)),
        rate(options.rate) {}

  const ClusterHost& host;
  const Metrics& metrics;
  const StatusServerOptions options;
  const absl::Time started = absl::Now();
  const RealClock clock;
  absl::Mutex rate_mutex;
  RequestRate rate ABSL_GUARDED_BY(rate_mutex);
  HttpServer server;
  bool https = false;
  std::string host_name;
  int port = 0;
  std::unique_ptr<StatusAccess> access;  // once the port is known
  std::thread thread;

  absl::Duration Uptime() const { return absl::Now() - started; }
  void AddRoutes();
  // Whether the request goes on to its route.
  bool IsInTurn(const std::string& peer);
  bool Admits(const httplib::Request& request, httplib::Response& response);
};

StatusServer::StatusServer(const ClusterHost& host, const Metrics& metrics,
                           StatusServerOptions options)
    : parts_(std::make_unique<Parts>(host, metrics, std::move(options))) {
  httplib::Server& server = parts_->server;
  server.set_tcp_nodelay(true);
  // httplib's default shares the port with any that asks; this refuses.
  server.set_socket_options([](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
  server.set_default_headers(
      {{"Content-Security-Policy", ContentPolicy(kPageHtml)},
       {"X-Content-Type-Options", "nosniff"},
       {"X-Frame-Options", "DENY"},
       {"Referrer-Policy", "no-referrer"},
       {"Cross-Origin-Resource-Policy", "same-origin"},
       {"Cache-Control", "no-store"}});
  parts_->AddRoutes();
}

StatusServer::~StatusServer() { Stop(); }

// Of "10.0.0.1:77" the port says nothing.
bool StatusServer::Parts::IsInTurn(const std::string& peer) {
  absl::MutexLock lock(&rate_mutex);
  const auto wait =
      rate.Take(peer.substr(0, peer.rfind(':')), clock.MonotonicNanos());
  return wait.has_value();
}

bool StatusServer::Parts::Admits(const httplib::Request& request,
                                 httplib::Response& response) {
  if (!IsInTurn(request.remote_addr)) {
    response.set_header("Retry-After", "1");
    AnswerError(response, 429, "too many requests of this host; wait a second");
    return false;
  }
  switch (access->Judge(CredentialsOf(request))) {
    case AccessVerdict::kGranted:
      return true;
    case AccessVerdict::kByLink:
      response.set_header("Set-Cookie", access->set_cookie());
      response.set_redirect("/", 303);
      return false;
    case AccessVerdict::kOtherHost:
      AnswerError(response, 421,
                  "no such host is served here; a name besides this host's own "
                  "is made known with troupe-scheduler --http-name NAME");
      break;
    case AccessVerdict::kNoToken:
      response.set_header("WWW-Authenticate", "Bearer realm=\"troupe\"");
      AnswerError(response, 401,
                  "this wants the cluster's token: open the link that `troupe "
                  "up` printed, or send \"Authorization: Bearer TOKEN\" with "
                  "what is in DIR/trust/page.token");
      break;
  }
  TellOfRefusedPeer(Door::kHttp,
                    absl::StrCat(request.remote_addr, " asked over HTTP for ",
                                 OneLine(request.path, 100),
                                 response.status == 401 ? ", without the token"
                                                        : ", of another host"));
  return false;
}

void StatusServer::Parts::AddRoutes() {
  server.set_pre_routing_handler([this](const httplib::Request& request,
                                        httplib::Response& response) {
    if (request.method == "GET" || request.method == "HEAD") {
      return Admits(request, response)
                 ? httplib::Server::HandlerResponse::Unhandled
                 : httplib::Server::HandlerResponse::Handled;
    }
    response.set_header("Allow", "GET, HEAD");
    AnswerError(response, 405,
                "only GET and HEAD; jobs are submitted with `troupe submit`");
    return httplib::Server::HandlerResponse::Handled;
  });
  server.Get("/", [this](const httplib::Request&, httplib::Response& response) {
    response.set_content(PageFor(options.trust), "text/html; charset=utf-8");
  });
  server.Get(
      "/healthz", [this](const httplib::Request&, httplib::Response& response) {
        const absl::Status healthy = options.health();
        if (healthy.ok()) {
          response.set_content("ok\n", "text/plain");
        } else {
          response.status = 503;
          response.set_content("the scheduler is not well; its log says why\n",
                               "text/plain");
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
  if (!IsLoopback(listen)) {
    const PeerTrust& trust = parts_->options.trust;
    RETURN_IF_ERROR(
        CheckTrust(trust, PeerRole::kScheduler, listen, absl::Now()));
    if (trust.insecure == 0) {
      ASSIGN_OR_RETURN(auto tls, TlsServer::Create(trust.certificates));
      parts_->server.Encrypt(std::move(tls));
      parts_->https = true;
    }
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
  parts_->access = std::make_unique<StatusAccess>(
      StatusAccess::Options{.token = parts_->options.token,
                            .names = parts_->options.names,
                            .port = parts_->port,
                            .https = parts_->https});
  parts_->server.LengthenBacklog();
  parts_->thread = std::thread([&server] { server.listen_after_bind(); });
  // Stop before the loop runs would not be seen by it.
  while (!server.is_running()) std::this_thread::yield();
  return absl::OkStatus();
}

std::string StatusServer::AnswerTo(const std::string& head,
                                   const std::string& peer) {
  return parts_->server.Answer(head, peer).bytes;
}

std::string StatusServer::url() const {
  CHECK(parts_->port > 0);
  return absl::StrCat(parts_->https ? "https://" : "http://", parts_->host_name,
                      ":", parts_->port);
}

void StatusServer::Stop() {
  if (!parts_->thread.joinable()) return;
  parts_->server.stop();
  parts_->thread.join();
  parts_->server.CloseConnections();
}

}  // namespace troupe
