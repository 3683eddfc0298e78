#include "clients/cli/root_flags.h"

namespace troupe {

void RootFlags::Declare(Flags& flags) {
  flags.Texts("--root", said_,
              {.value = "NAME=DIR",
               .text = "Where the workers' root NAME lies on this machine "
                       "(may be given several times)"});
}

}  // namespace troupe
