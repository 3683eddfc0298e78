#include "scheduler/cluster/link_measurements.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/scheduler/cluster/harness.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Workers that can measure, and what they are asked.
struct Measuring : Harness {
  using Harness::Harness;

  WorkerId JoinHost(const std::string& host, const std::string& name) {
    Register request = RegisterOf(name, host);
    request.set_measures_links(true);
    auto id = cluster.RegisterWorker(request, now, actions);
    CHECK_OK(id.status());
    all.push_back(*id);
    Compile();
    return *id;
  }
  void Hosts(int count, int workers) {
    for (int h = 0; h < count; ++h) {
      for (int w = 0; w < workers; ++w) {
        const std::string host = absl::StrCat("h", h);
        JoinHost(host, absl::StrCat(host, "-", w));
      }
    }
  }
  // Requests by the worker that got them.
  std::map<WorkerId, MeasureLinks> Asked() {
    std::map<WorkerId, MeasureLinks> asked;
    for (const SendToWorker& send : All<SendToWorker>()) {
      if (send.message.has_measure_links()) {
        asked[send.worker] = send.message.measure_links();
      }
    }
    return asked;
  }
  std::map<WorkerId, MeasureLinks> AskedAfter(absl::Duration time) {
    Remember();
    ClearActions();
    Pass(time, all);
    return Asked();
  }
  void Answer(WorkerId from, const MeasureLinks& asked, double alone,
              double together, const std::string& error = "") {
    WorkerMessage message;
    LinksMeasured& said = *message.mutable_links_measured();
    said.set_measurement(asked.measurement());
    said.mutable_alone()->set_bytes_per_second(alone);
    said.mutable_alone()->set_latency_us(31);
    said.set_together_bytes_per_second(together);
    said.set_error(error);
    Send(from, message);
  }
  const WorkerDescription& Of(WorkerId id) { return worker(id).description(); }

  // What the store has by now.
  void Remember() {
    for (const PersistHostLinks& host : All<PersistHostLinks>()) {
      stored.erase(std::remove_if(stored.begin(), stored.end(),
                                  [&](const HostTopology& other) {
                                    return other.host() == host.links.host();
                                  }),
                   stored.end());
      stored.push_back(host.links);
    }
  }

  std::vector<WorkerId> all;
  std::vector<HostTopology> stored;
};

TEST(LinkMeasurements, TwoHostsMeasureWhatIsBetweenThem) {
  Measuring m;
  m.Hosts(2, 2);
  const auto asked = m.AskedAfter(absl::Seconds(4));
  ASSERT_EQ(asked.size(), 4u);
  EXPECT_THAT(asked.at(m.all[0]).worker_names(),
              ElementsAre("h0-0", "h0-1", "h1-0", "h1-1"));
  EXPECT_EQ(asked.at(m.all[2]).rank(), 2);
  // Together they are as fast as one alone: one adapter.
  for (const auto& [worker, request] : asked) {
    m.Answer(worker, request, 1.234e9, 0.6e9);
  }
  const WorkerDescription& worker = m.Of(m.all[3]);
  EXPECT_EQ(worker.network().rate().bytes_per_second(), 1.2e9);
  EXPECT_EQ(worker.network().rate().latency_us(), 31);
  EXPECT_EQ(worker.network().source(), MEASURED);
  EXPECT_THAT(worker.network().why(), HasSubstr("with h0, "));
  ASSERT_EQ(worker.nics_size(), 1);
  EXPECT_EQ(worker.nics(0).link().rate().bytes_per_second(), 1.2e9);
  EXPECT_THAT(m.AskedAfter(absl::Minutes(20)), IsEmpty());
}

// Of three hosts all pairs, also what is slower than what a host reached
// before; the next scheduler knows them.
TEST(LinkMeasurements, KeepsWhatEachPairReached) {
  Measuring m;
  m.Hosts(3, 1);
  const auto speed = [](const MeasureLinks& asked) {
    const std::set<std::string> names(asked.worker_names().begin(),
                                      asked.worker_names().end());
    return names == std::set<std::string>{"h0-0", "h2-0"} ? 1e8 : 1e9;
  };
  for (int time = 0; time < 20; ++time) {
    for (const auto& [worker, request] : m.AskedAfter(absl::Seconds(4))) {
      m.Answer(worker, request, speed(request), speed(request));
    }
  }
  const auto expect_all = [](const Topology& topology) {
    std::map<std::pair<std::string, std::string>, double> rates;
    for (const HostTopology& host : topology.hosts()) {
      for (const HostPair& pair : host.pairs()) {
        rates[{host.host(), pair.host()}] = pair.rate().bytes_per_second();
        EXPECT_GT(pair.measured_unix_ms(), 0);
      }
    }
    ASSERT_EQ(rates.size(), 6u);
    for (const auto& [hosts, rate] : rates) {
      const bool slow =
          hosts == std::pair<std::string, std::string>("h0", "h2") ||
          hosts == std::pair<std::string, std::string>("h2", "h0");
      EXPECT_EQ(rate, slow ? 1e8 : 1e9) << hosts.first << hosts.second;
    }
  };
  expect_all(m.cluster.MeasuredPairs());
  EXPECT_EQ(m.Of(m.all[2]).network().rate().bytes_per_second(), 1e9)
      << "the best counts";
  m.Remember();
  Measuring next;
  next.cluster.RestoreHostLinks(m.stored, next.now);
  expect_all(next.cluster.MeasuredPairs());
}

TEST(LinkMeasurements, PairsThatAreAsFastTogetherHaveAnAdapterEach) {
  Measuring m;
  m.Hosts(2, 2);
  for (const auto& [worker, request] : m.AskedAfter(absl::Seconds(4))) {
    m.Answer(worker, request, 1e9, 0.98e9);
  }
  EXPECT_EQ(m.Of(m.all[0]).network().rate().bytes_per_second(), 1e9);
  EXPECT_TRUE(m.Of(m.all[0]).nics().empty());
}

// What was measured is said again of a worker that comes back, also by the next
// scheduler.
TEST(LinkMeasurements, AreKeptOverReconnects) {
  Measuring m;
  m.Hosts(2, 1);
  for (const auto& [worker, request] : m.AskedAfter(absl::Seconds(4))) {
    m.Answer(worker, request, 2e9, 2e9);
  }
  std::vector<HostTopology> stored;
  for (const PersistHostLinks& host : m.All<PersistHostLinks>()) {
    stored.push_back(host.links);
  }
  ASSERT_EQ(stored.size(), 2u);
  m.Disconnect(m.all[1], "gone");
  const WorkerId again = m.JoinHost("h1", "h1-0");
  EXPECT_EQ(m.Of(again).network().source(), MEASURED);

  Measuring next;
  next.cluster.RestoreHostLinks(stored, next.now);
  next.Hosts(2, 1);
  EXPECT_EQ(next.Of(next.all[0]).network().rate().bytes_per_second(), 2e9);
  EXPECT_THAT(next.AskedAfter(absl::Minutes(1)), IsEmpty());
}

// It accepts, and never answers: that costs some seconds, and no job.
TEST(LinkMeasurements, WhoNeverAnswersIsAssumed) {
  Measuring m;
  m.Hosts(2, 1);
  const auto asked = m.AskedAfter(absl::Seconds(4));
  ASSERT_EQ(asked.size(), 2u);
  m.Answer(m.all[0], asked.at(m.all[0]), 1e9, 1e9);
  m.ClearActions();
  m.Pass(absl::Seconds(8), m.all);
  const WorkerDescription& worker = m.Of(m.all[0]);
  EXPECT_EQ(worker.network().source(), ASSUMED);
  EXPECT_THAT(worker.network().why(),
              HasSubstr("not measured with h1: h1-0 did not answer within 5s"));
  std::vector<WorkerId> stopped;
  for (const SendToWorker& send : m.All<SendToWorker>()) {
    if (send.message.has_stop_measuring()) stopped.push_back(send.worker);
  }
  EXPECT_THAT(stopped, ElementsAre(m.all[1]));
  // Sooner at first, when machines are busy with their start.
  EXPECT_THAT(m.AskedAfter(absl::Seconds(15)), IsEmpty());
  EXPECT_EQ(m.AskedAfter(absl::Seconds(30)).size(), 2u);
  int asked_again = 0;
  for (int minute = 0; minute < 60; ++minute) {
    asked_again += !m.AskedAfter(absl::Minutes(1)).empty();
  }
  EXPECT_GE(asked_again, 6);
  EXPECT_LE(asked_again, 12);
}

TEST(LinkMeasurements, SoIsOneWhosePeerFailsOrIsLost) {
  for (const bool lost : {false, true}) {
    Measuring m;
    m.Hosts(2, 1);
    const auto asked = m.AskedAfter(absl::Seconds(4));
    if (lost) {
      m.Disconnect(m.all[1], "its cable was pulled");
    } else {
      m.Answer(m.all[1], asked.at(m.all[1]), 0, 0, "no route to\nhost");
    }
    const std::string& why = m.Of(m.all[0]).network().why();
    EXPECT_THAT(why, HasSubstr(lost ? "h1-0 was lost" : "h1-0: no route"));
    EXPECT_EQ(why.find('\n'), std::string::npos);
  }
}

TEST(LinkMeasurements, NoRateOfAHostilePeerIsTaken) {
  for (const double rate : {0.0, -1.0, 1e300}) {
    Measuring m;
    m.Hosts(2, 1);
    for (const auto& [worker, request] : m.AskedAfter(absl::Seconds(4))) {
      m.Answer(worker, request, rate, rate);
    }
    EXPECT_EQ(m.Of(m.all[0]).network().source(), ASSUMED) << rate;
    EXPECT_EQ(m.Of(m.all[0]).network().rate().bytes_per_second(), 0);
  }
}

// A worker does not say itself how fast its network is.
TEST(LinkMeasurements, WhatAWorkerClaimsIsDropped) {
  Measuring m;
  Register request = RegisterOf("w", "h");
  request.mutable_worker()->add_nics()->set_name("fast");
  TopologyLink& network = *request.mutable_worker()->mutable_network();
  network.mutable_rate()->set_bytes_per_second(1e15);
  const auto id = m.cluster.RegisterWorker(request, m.now, m.actions);
  EXPECT_FALSE(m.Of(*id).has_network());
  EXPECT_TRUE(m.Of(*id).nics().empty());
}

TEST(LinkMeasurements, NothingIsMeasuredBesideAJob) {
  Measuring m;
  m.Hosts(2, 2);
  const JobId job = m.Submit(SpecOf(1));
  EXPECT_THAT(m.AskedAfter(absl::Minutes(1)), IsEmpty());
  (void)job;
}

TEST(LinkMeasurements, AJobThatStartsEndsThem) {
  Measuring m;
  m.Hosts(2, 2);
  const auto asked = m.AskedAfter(absl::Seconds(4));
  ASSERT_EQ(asked.size(), 4u);
  m.ClearActions();
  const JobId job = m.Submit(SpecOf(1));
  EXPECT_EQ(m.status(job).state(), STARTING);
  m.Pass(absl::Seconds(1), m.all);
  std::set<WorkerId> stopped;
  for (const SendToWorker& send : m.All<SendToWorker>()) {
    if (send.message.has_stop_measuring()) stopped.insert(send.worker);
  }
  EXPECT_EQ(stopped.size(), 4u);
  // What still comes is dropped.
  m.Answer(m.all[0], asked.at(m.all[0]), 1e9, 1e9);
  EXPECT_FALSE(m.Of(m.all[0]).has_network());
}

TEST(LinkMeasurements, WorkersOfOlderBuildsAreNotAsked) {
  Measuring m;
  m.Hosts(1, 1);
  m.all.push_back(m.Join("old", "h9"));
  EXPECT_THAT(m.AskedAfter(absl::Minutes(1)), IsEmpty());
}

// Of 1,000 workers each host is measured with two others, a few at a time.
TEST(LinkMeasurements, ManyHostsTakeTheirTurns) {
  Measuring m;
  m.Hosts(125, 8);
  std::map<std::string, std::set<std::string>> partners;
  size_t measured = 0;
  for (int second = 0; second < 100; ++second) {
    const auto asked = m.AskedAfter(absl::Seconds(1));
    std::set<int64_t> numbers;
    for (const auto& [worker, request] : asked) {
      numbers.insert(request.measurement());
      EXPECT_EQ(request.worker_names_size(), 16);
      const std::string& host = m.Of(worker).host();
      const int other = request.rank() < 8 ? 15 : 0;
      const std::string& name = request.worker_names(other);
      partners[host].insert(name.substr(0, name.find('-')));
      m.Answer(worker, request, 1e9, 0.2e9);
    }
    EXPECT_LE(numbers.size(), 4u);
    measured += numbers.size();
  }
  EXPECT_EQ(partners.size(), 125u);
  for (const auto& [host, others] : partners) {
    EXPECT_GE(others.size(), 1u) << host;
    EXPECT_LE(others.size(), 3u) << host;
    EXPECT_EQ(others.count(host), 0u);
  }
  EXPECT_LE(measured, 2 * 125u);
}

}  // namespace
}  // namespace troupe
