#include "scheduler/status/status_server.h"

#include <sys/socket.h>

#include <deque>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "httplib.h"
#include "proto/base/check.h"
#include "scheduler/status/api.h"
#include "scheduler/status/json.h"
#include "scheduler/status/page.h"

namespace troupe {
namespace {

// httplib's own pool has a queue without a bound.
class BoundedPool final : public httplib::TaskQueue {
 public:
  BoundedPool() {
    for (int i = 0; i < StatusServer::kThreads; ++i) {
      threads_.emplace_back([this] { Loop(); });
    }
  }

  // Waits while the queue is full: then the kernel's backlog fills instead.
  void enqueue(std::function<void()> task) override {
    absl::MutexLock lock(&mutex_);
    const auto room = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return stopping_ || tasks_.size() < StatusServer::kConnectionsMax;
    };
    mutex_.Await(absl::Condition(&room));
    tasks_.push_back(std::move(task));
  }

  void shutdown() override {
    {
      absl::MutexLock lock(&mutex_);
      stopping_ = true;
    }
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  void Loop() {
    while (true) {
      std::function<void()> task;
      {
        absl::MutexLock lock(&mutex_);
        const auto due = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
          return stopping_ || !tasks_.empty();
        };
        mutex_.Await(absl::Condition(&due));
        if (tasks_.empty()) return;
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
      task();
    }
  }

  absl::Mutex mutex_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
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
  httplib::Server server;
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
  server.new_task_queue = [] { return new BoundedPool; };
  server.set_keep_alive_timeout(1);
  server.set_read_timeout(5);
  server.set_write_timeout(5);
  server.set_payload_max_length(1 << 16);
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
    int64_t from = 0;
    if (request.has_param("from") &&
        !absl::SimpleAtoi(request.get_param_value("from"), &from)) {
      return AnswerError(response, 400, "from must be a step's number");
    }
    const absl::StatusOr<std::string> answer =
        ApiAnswer(host, std::string(request.matches[1]), from, Uptime());
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
}

}  // namespace troupe
