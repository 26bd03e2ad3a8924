{# Tiles are numbered so that SUPER x SUPER neighbours follow each other and share the cache. #}
  const auto item = syclext::this_work_item::get_nd_item<1>();
  const int id = item.get_global_id(0), group = id / (SUPER * SUPER), inner = id % (SUPER * SUPER);
  const int across = (cols + WIDTH * SUPER - 1) / (WIDTH * SUPER);
  const int m0 = (group / across * SUPER + inner / SUPER) * TM;
  const int n0 = (group % across * SUPER + inner % SUPER) * WIDTH;
  if (m0 >= rows || n0 >= cols) return;
