#include "scheduler/simulate/adapters.h"

#include <map>
#include <string>
#include <utility>

#include "scheduler/simulate/links.h"

namespace troupe {
namespace {

// Of a host, by name. Nobody names the one that is assumed.
using Place = std::pair<int, std::string>;
constexpr char kAssumed[] = "";

// Numbers adapters, those that only one rank uses among them.
class Numbering {
 public:
  explicit Numbering(double gain) : gain_(gain) {}

  std::vector<int> Of(const WorkerDescription& worker, int host) {
    std::vector<int> used;
    for (const Nic& nic : worker.nics()) {
      used.push_back(Number({host, nic.name()}, nic.link().rate()));
    }
    if (used.empty() && !KnowsNetwork(worker)) {
      used.push_back(Number({host, kAssumed}, NetworkOf(worker)));
    }
    for (const int number : used) ++users_[number];
    return used;
  }

  int users(int number) const { return users_[number]; }
  double rate(int number) const { return rates_[number]; }

 private:
  int Number(Place place, const LinkRate& rate) {
    const auto [found, is_new] =
        numbers_.try_emplace(std::move(place), static_cast<int>(rates_.size()));
    if (is_new) {
      rates_.push_back(gain_ * rate.bytes_per_second());
      users_.push_back(0);
    }
    return found->second;
  }

  const double gain_;
  std::map<Place, int> numbers_;
  std::vector<double> rates_;
  std::vector<int> users_;
};

bool AnySaysNothing(absl::Span<const WorkerDescription> workers) {
  for (const WorkerDescription& worker : workers) {
    if (!KnowsNetwork(worker) || worker.nics_size() > 0) return true;
  }
  return false;
}

}  // namespace

Adapters AdaptersOf(absl::Span<const WorkerDescription> workers,
                    const std::vector<int>& hosts, double gain) {
  if (!AnySaysNothing(workers)) return {};
  Numbering numbering(gain);
  Adapters all;
  for (size_t r = 0; r < workers.size(); ++r) {
    all.of_rank.push_back(numbering.Of(workers[r], hosts[r]));
  }
  Adapters adapters;
  std::map<int, int> kept;  // by number
  bool any = false;
  for (std::vector<int>& used : all.of_rank) {
    // The link of a rank that has an adapter for itself is as fast.
    if (used.size() == 1 && numbering.users(used.front()) == 1) used.clear();
    for (int& number : used) {
      const auto [found, is_new] =
          kept.try_emplace(number, static_cast<int>(adapters.rates.size()));
      if (is_new) adapters.rates.push_back(numbering.rate(number));
      number = found->second;
      any = true;
    }
  }
  if (any) adapters.of_rank = std::move(all.of_rank);
  return adapters;
}

AdapterUses UsesOf(const Adapters& adapters, const RankClasses& classes) {
  AdapterUses uses;
  if (adapters.of_rank.empty()) return uses;
  // By adapter: how many ranks of each class send all of their bytes over it,
  // by first ranks.
  std::vector<std::map<int, double>> company(adapters.rates.size());
  for (size_t r = 0; r < adapters.of_rank.size(); ++r) {
    const std::vector<int>& used = adapters.of_rank[r];
    const int first = classes.FirstLike(static_cast<int>(r));
    for (const int adapter : used) {
      company[adapter][first] += 1.0 / static_cast<double>(used.size());
    }
  }
  uses.of_rank.resize(adapters.of_rank.size());
  std::map<std::pair<double, std::map<int, double>>, int> known;
  for (size_t adapter = 0; adapter < company.size(); ++adapter) {
    const double rate = adapters.rates[adapter];
    const auto [found, is_new] =
        known.try_emplace({rate, company[adapter]}, uses.adapters);
    if (!is_new) continue;
    ++uses.adapters;
    for (const auto& [first, ranks] : company[adapter]) {
      uses.of_rank[first].push_back(
          {.adapter = found->second, .ns_per_byte = ranks / rate * 1e9});
    }
  }
  return uses;
}

}  // namespace troupe
