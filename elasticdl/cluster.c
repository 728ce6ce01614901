#include "elasticdl/cluster.h"
#include "common/base/json.h"
#include "common/base/status.h"

const char *elasticdl_type_name(elasticdl_type_t type)
{
    return type == ELASTICDL_PS ? "ps" : "worker";
}

elasticdl_type_t elasticdl_member_type(const elasticdl_cluster_t *self, int member)
{
    return member < self->ps ? ELASTICDL_PS : ELASTICDL_WORKER;
}

int elasticdl_member_index(const elasticdl_cluster_t *self, int member)
{
    return member < self->ps ? member : member - self->ps;
}

static json_t *s_addresses(const elasticdl_cluster_t *self, int from, int count)
{
    json_t *list = json_array();
    for (int i = from; i < from + count; i++)
        json_array_append_new(list, tt_json_text(self->addresses[i]));
    return list;
}

json_t *elasticdl_tf_config(const elasticdl_cluster_t *self, int member)
{
    json_t *cluster = json_object();
    json_object_set_new(cluster, "worker", s_addresses(self, self->ps, self->workers));
    if (self->ps > 0)
        json_object_set_new(cluster, "ps", s_addresses(self, 0, self->ps));
    return json_pack("{s:o, s:{s:s, s:i}}", "cluster", cluster, "task", "type",
        elasticdl_type_name(elasticdl_member_type(self, member)), "index", elasticdl_member_index(self, member));
}

char *elasticdl_config_body(const elasticdl_cluster_t *self, int member, const char *master, int set_id)
{
    json_t *body = json_pack("{s:i, s:o, s:s, s:i}", "NUM_WORKERS", self->workers, "TF_CONFIG",
        elasticdl_tf_config(self, member), "MASTER", master, "SET_ID", set_id);
    char *text = json_dumps(body, JSON_COMPACT);
    json_decref(body);
    TT_CHECK(text != NULL);
    return text;
}
