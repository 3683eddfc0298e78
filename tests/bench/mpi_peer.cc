#include "tests/bench/mpi_peer.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"

namespace troupe {
namespace {

constexpr char kSource[] = "tests/bench/all_reduce_mpi.cc";

bool Succeeds(const std::string& command) {
  return std::system(command.c_str()) == 0;
}

FILE* OpenPipe(const std::string& path, const char* mode) {
  FILE* const pipe = std::fopen(path.c_str(), mode);
  CHECK(pipe != nullptr) << path;
  return pipe;
}

// Its default is the shared-memory transport; ranks may outnumber cores.
pid_t Launch(int ranks, const std::string& folder) {
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child != 0) return child;
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  execlp("mpirun", "mpirun", "--oversubscribe", "--bind-to", "none", "-np",
         absl::StrCat(ranks).c_str(), (folder + "/all_reduce_mpi").c_str(),
         folder.c_str(), static_cast<char*>(nullptr));
  _exit(127);
}

}  // namespace

std::optional<MpiPeer> MpiPeer::Start(int ranks) {
  if (!Succeeds("command -v mpirun mpicxx > /dev/null")) {
    std::printf("MPI: not found (mpirun, mpicxx)\n");
    return std::nullopt;
  }
  char folder[] = "/tmp/troupe-all-reduce-XXXXXX";
  CHECK(mkdtemp(folder) != nullptr);
  MpiPeer peer(folder);
  if (!Succeeds(absl::StrCat("mpicxx -O3 -o ", peer.folder_, "/all_reduce_mpi ",
                             kSource))) {
    std::printf("MPI: %s does not compile\n", kSource);
    return std::nullopt;
  }
  for (int rank = 0; rank < ranks; ++rank) {
    CHECK_EQ(mkfifo(absl::StrCat(peer.folder_, "/", rank).c_str(), 0600), 0);
  }
  CHECK_EQ(mkfifo((peer.folder_ + "/seconds").c_str(), 0600), 0);
  peer.mpirun_ = Launch(ranks, peer.folder_);
  for (int rank = 0; rank < ranks; ++rank) {
    peer.orders_.push_back(
        OpenPipe(absl::StrCat(peer.folder_, "/", rank), "w"));
  }
  peer.seconds_ = OpenPipe(peer.folder_ + "/seconds", "r");
  return peer;
}

MpiPeer::MpiPeer(MpiPeer&& other) noexcept
    : folder_(std::exchange(other.folder_, "")),
      mpirun_(std::exchange(other.mpirun_, -1)),
      orders_(std::exchange(other.orders_, {})),
      seconds_(std::exchange(other.seconds_, nullptr)) {}

MpiPeer::~MpiPeer() {
  for (FILE* orders : orders_) std::fclose(orders);
  if (seconds_ != nullptr) std::fclose(seconds_);
  if (mpirun_ > 0) waitpid(mpirun_, nullptr, 0);
  if (!folder_.empty()) std::filesystem::remove_all(folder_);
}

std::vector<double> MpiPeer::AllReduce(const AllReduceRounds& rounds) {
  const int64_t order[3] = {rounds.bytes, rounds.rounds, rounds.calls};
  for (FILE* orders : orders_) {
    CHECK_EQ(std::fwrite(order, sizeof(order), 1, orders), 1u);
    std::fflush(orders);
  }
  std::vector<double> seconds(rounds.rounds);
  CHECK_EQ(std::fread(seconds.data(), sizeof(double), seconds.size(), seconds_),
           seconds.size())
      << "MPI's all-reduce ended";
  return seconds;
}

}  // namespace troupe
