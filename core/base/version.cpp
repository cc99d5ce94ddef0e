// The one source that is compiled with the version, so that a new one recompiles little.
#include "core/base/version.h"

namespace trireme {

const char* version() { return TRIREME_VERSION; }

}  // namespace trireme
